//! What a member's watches tell the ledger.

use super::Ledger;
use super::book::Book;
use portolan_core::capacity::{ClusterIndex, NodeFacts, PodFacts};
use portolan_runtime::{Change, Key};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The right to tell the ledger what a cluster has. It ends when the cluster is opened anew or this is dropped; then the
/// cluster has no room until it is told again.
#[derive(Debug)]
pub struct ClusterFeed {
    ledger: Ledger,
    cluster: String,
    epoch: u64,
    listed: Listed,
}

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
        Arc::new(ClusterFeed { ledger, cluster, epoch, listed })
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

    /// Takes a change of pods.
    pub fn pods(&self, change: Change<PodFacts>) {
        let listed = matches!(change, Change::Listed(_));
        self.tell(|index| match change {
            Change::Set(key, pod) => index.set_pod(&key.to_string(), pod),
            Change::Gone(key) => index.remove_pod(&key.to_string()),
            Change::Listed(all) => {
                let listed: BTreeSet<String> = all.keys().map(ToString::to_string).collect();
                let known = index.pod_keys().filter(|key| !listed.contains(*key));
                let gone: Vec<String> = known.map(str::to_owned).collect();
                let mut freed = false;
                for key in &gone {
                    freed |= index.remove_pod(key);
                }
                for (key, pod) in all {
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
