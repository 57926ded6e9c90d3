//! What a member's watches tell the ledger.

use super::Ledger;
use super::book::Book;
use portolan_core::capacity::{Amounts, ClusterIndex, NodeFacts, PODS, PodFacts, ReportedRoom};
use portolan_runtime::{Change, Key};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The right to tell the ledger what a cluster has. It ends when the cluster is opened anew or this is dropped; then the
/// cluster has no room until it is told again.
#[derive(Debug)]
pub struct ClusterFeed {
    ledger: Ledger,
    cluster: String,
    epoch: u64,
    listed: Listed,
    /// Whether an offer says what there is, and not nodes.
    by_offer: AtomicBool,
    /// Pods that a summary of the cluster does not count yet, if summaries say what there is.
    uncounted: Option<Mutex<Uncounted>>,
}

/// Pods that have a node, as far as the last summary of their cluster does not count them: their replicas still hold the room that
/// they reserved.
#[derive(Debug, Default)]
struct Uncounted {
    /// Up to which version of pods the last summary counts.
    version: u64,
    pods: BTreeMap<Key, PodFacts>,
}

impl Uncounted {
    /// The pod as the index is to know it: without its node, as long as that is not counted.
    fn place(&mut self, key: &Key, pod: PodFacts, index: &ClusterIndex) -> PodFacts {
        // One that is counted stays so, whatever happens to it.
        let is_counted =
            index.is_bound(&key.to_string()) || pod.version.is_some_and(|version| version <= self.version);
        if pod.node.is_none() || pod.finished || is_counted {
            self.pods.remove(key);
            return pod;
        }
        let unbound = PodFacts { node: None, ..pod.clone() };
        self.pods.insert(key.clone(), pod);
        unbound
    }

    /// A new summary counts pods up to this version: those that it counts now.
    fn count(&mut self, version: u64) -> Vec<(Key, PodFacts)> {
        self.version = version;
        self.pods.extract_if(.., |_, pod| pod.version.is_some_and(|of_pod| of_pod <= version)).collect()
    }
}

/// What stands for the nodes of a cluster of which no more is known than its offer.
const OFFERED: &str = "offer";

/// What nodes have and an offer need not name.
const UNBOUNDED: [&str; 2] = [PODS, "ephemeral-storage"];

/// Whether the nodes and pods of a cluster have been listed.
#[derive(Clone, Debug, Default)]
pub struct Listed(Arc<[AtomicBool; 2]>);

impl Listed {
    /// Whether both have been.
    #[must_use]
    pub fn all(&self) -> bool {
        self.0.iter().all(|each| each.load(Ordering::Acquire))
    }
}

impl Ledger {
    /// Opens a cluster: what was told of it before is forgotten, what workloads hold there stands.
    #[must_use]
    pub fn open(&self, cluster: &str) -> Arc<ClusterFeed> {
        self.open_as(cluster, None)
    }

    /// The same for a cluster of which summaries are told, and no nodes.
    #[must_use]
    pub fn open_reported(&self, cluster: &str) -> Arc<ClusterFeed> {
        self.open_as(cluster, Some(Mutex::default()))
    }

    fn open_as(&self, cluster: &str, uncounted: Option<Mutex<Uncounted>>) -> Arc<ClusterFeed> {
        let epoch = self.transact(|book| {
            book.epoch += 1;
            let mut index = ClusterIndex::default();
            index.set_growth(book.growth(cluster));
            index.set_quota(book.quota(cluster).cloned());
            for (uid, shape, replicas) in book.reservations_of(cluster) {
                index.reserve(&uid, &shape, replicas);
            }
            book.clusters.insert(cluster, index, book.epoch);
            book.epoch
        });
        let (ledger, cluster, listed) = (self.clone(), cluster.to_owned(), Listed::default());
        let by_offer = AtomicBool::new(false);
        Arc::new(ClusterFeed { ledger, cluster, epoch, listed, by_offer, uncounted })
    }
}

impl ClusterFeed {
    /// Whether all has been listed once.
    #[must_use]
    pub fn listed(&self) -> Listed {
        self.listed.clone()
    }

    /// Whether the ledger still takes what this tells, and so answers for it.
    #[must_use]
    pub fn is_current(&self, book: &Book) -> bool {
        book.clusters.is_open(&self.cluster, self.epoch)
    }

    /// Takes a change of nodes.
    pub fn nodes(&self, change: Change<NodeFacts>) {
        let listed = matches!(change, Change::Listed(_));
        self.tell(|index| match change {
            Change::Set(_, node) => index.set_node(node),
            Change::Gone(key) => index.remove_node(&key.name),
            Change::Listed(all) => {
                let known = index.node_names().filter(|name| !all.contains_key(&Key::cluster(name)));
                let gone: Vec<String> = known.map(str::to_owned).collect();
                let mut freed = false;
                for name in &gone {
                    freed |= index.remove_node(name);
                }
                for node in all.into_values() {
                    freed |= index.set_node(node);
                }
                index.nodes_listed();
                freed
            }
        });
        self.listed.0[0].fetch_or(listed, Ordering::AcqRel);
    }

    /// Takes what is offered instead of nodes, which are not seen: all room is on one node, with the labels that the offer
    /// tells. Without an offer the node is there and has nothing: no room is no reason to move what runs.
    pub fn offer(&self, offered: &Amounts, labels: BTreeMap<String, String>) {
        self.by_offer.store(true, Ordering::Release);
        let mut allocatable = offered.clone();
        for name in UNBOUNDED.into_iter().filter(|_| offered.iter().next().is_some()) {
            if offered.find(name).is_none() {
                allocatable.set(name, i64::MAX / 1000);
            }
        }
        let name = OFFERED.to_owned();
        let node = NodeFacts { name: name.clone(), allocatable, ready: true, labels, ..NodeFacts::default() };
        self.nodes(Change::Listed(BTreeMap::from([(Key::cluster(&name), node)])));
    }

    /// Takes a summary of the cluster, and counts the pods on nodes that it counts.
    pub(crate) fn summary(&self, room: ReportedRoom) {
        self.tell(|index| {
            let version = room.pods_version;
            let mut freed = index.set_reported(room);
            for (key, pod) in self.uncounted().map(|mut each| each.count(version)).unwrap_or_default() {
                freed |= index.set_pod(&key.to_string(), pod);
            }
            freed
        });
        self.listed.0[0].store(true, Ordering::Release);
    }

    fn uncounted(&self) -> Option<MutexGuard<'_, Uncounted>> {
        self.uncounted.as_ref().map(|each| each.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A pod as the index is to know it.
    fn placed(&self, key: &Key, pod: PodFacts, index: &ClusterIndex) -> PodFacts {
        match self.uncounted() {
            Some(mut uncounted) => uncounted.place(key, pod, index),
            None => pod,
        }
    }

    /// A pod is gone.
    fn unplaced(&self, key: &Key) {
        if let Some(mut uncounted) = self.uncounted() {
            uncounted.pods.remove(key);
        }
    }

    /// Takes a change of pods.
    pub fn pods(&self, change: Change<PodFacts>) {
        let listed = matches!(change, Change::Listed(_));
        let by_offer = self.by_offer.load(Ordering::Acquire);
        // On whichever node it runs, it takes of the offer.
        let place = |mut pod: PodFacts| {
            pod.node = pod.node.map(|node| if by_offer { OFFERED.to_owned() } else { node });
            pod
        };
        let change = match change {
            Change::Set(key, pod) => Change::Set(key, place(pod)),
            Change::Listed(all) => {
                Change::Listed(all.into_iter().map(|(key, pod)| (key, place(pod))).collect())
            }
            gone @ Change::Gone(_) => gone,
        };
        self.tell(|index| match change {
            Change::Set(key, pod) => {
                let pod = self.placed(&key, pod, index);
                index.set_pod(&key.to_string(), pod)
            }
            Change::Gone(key) => {
                self.unplaced(&key);
                index.remove_pod(&key.to_string())
            }
            Change::Listed(all) => {
                if let Some(mut uncounted) = self.uncounted() {
                    uncounted.pods.retain(|key, _| all.contains_key(key));
                }
                let listed: BTreeSet<String> = all.keys().map(ToString::to_string).collect();
                let known = index.pod_keys().filter(|key| !listed.contains(*key));
                let gone: Vec<String> = known.map(str::to_owned).collect();
                let mut freed = false;
                for key in &gone {
                    freed |= index.remove_pod(key);
                }
                for (key, pod) in all {
                    let pod = self.placed(&key, pod, index);
                    freed |= index.set_pod(&key.to_string(), pod);
                }
                index.pods_listed();
                freed
            }
        });
        self.listed.0[1].fetch_or(listed, Ordering::AcqRel);
    }

    fn tell(&self, change: impl FnOnce(&mut ClusterIndex) -> bool) {
        self.ledger.transact(|book: &mut Book| {
            if !self.is_current(book) {
                return;
            }
            match book.clusters.change(&self.cluster, change) {
                Some(true) => book.waiting.freed(&self.cluster),
                Some(false) => book.waiting.changed(&self.cluster),
                None => {}
            }
        });
    }
}

impl Drop for ClusterFeed {
    fn drop(&mut self) {
        self.ledger.transact(|book| {
            if self.is_current(book) {
                book.clusters.remove(&self.cluster);
            }
        });
    }
}
