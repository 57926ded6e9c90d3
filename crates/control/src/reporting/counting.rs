//! The nodes and pods of this cluster, counted for as long as a hub asks.

use crate::capacity::Ledger;
use crate::fleet::{Watched, is_outdated};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_core::capacity::{ClusterIndex, PodFacts};
use portolan_runtime::{Change, Seed, WatchHealth, follow_with};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::JoinSet;

/// What this cluster is called in a ledger that has no other.
const OWN: &str = "own";

/// The nodes and pods of this cluster.
pub(super) struct Counting {
    ledger: Ledger,
    versions: Arc<Versions>,
    health: [WatchHealth; 2],
    tasks: JoinSet<()>,
}

/// The versions of the latest pods that are counted.
#[derive(Debug, Default)]
struct Versions {
    /// Of all pods.
    all: AtomicU64,
    /// Of the pods of hubs that have a node.
    own: AtomicU64,
}

impl Versions {
    fn note(&self, pod: &PodFacts) {
        let version = pod.version.unwrap_or(0);
        self.all.fetch_max(version, Ordering::AcqRel);
        if pod.workload.is_some() && pod.node.is_some() {
            self.own.fetch_max(version, Ordering::AcqRel);
        }
    }
}

impl Counting {
    /// Watches the nodes and pods, until it is dropped.
    pub(super) fn start(cluster: &Client, seed: Seed) -> Self {
        let (ledger, versions) = (Ledger::default(), Arc::<Versions>::default());
        let health = [WatchHealth::default(), WatchHealth::default()];
        let [of_nodes, of_pods] = health.clone();
        let feed = ledger.open(OWN);
        let mut tasks = JoinSet::new();
        let (nodes, config) = (Api::<Node>::all(cluster.clone()), watcher::Config::default);
        let take = {
            let feed = Arc::clone(&feed);
            move |change| feed.nodes(change)
        };
        tasks.spawn(follow_with(nodes, config(), Node::facts, take, seed.child("nodes"), of_nodes));
        let heard = Arc::clone(&versions);
        let take = move |change: Change<PodFacts>| {
            let latest: Vec<PodFacts> = match &change {
                Change::Set(_, pod) => vec![pod.clone()],
                Change::Listed(all) => all.values().cloned().collect(),
                Change::Gone(_) => Vec::new(),
            };
            feed.pods(change);
            // Only what is counted is said to be.
            latest.iter().for_each(|pod| heard.note(pod));
        };
        let pods = Api::<Pod>::all(cluster.clone());
        tasks.spawn(follow_with(pods, config(), Pod::facts, take, seed.child("pods"), of_pods));
        Self { ledger, versions, health, tasks }
    }

    /// Whether it goes on.
    pub(super) fn is_whole(&self) -> bool {
        self.tasks.len() == 2
    }

    /// What stands in the way of a summary, if anything does.
    pub(super) fn obstacle(&mut self) -> Option<String> {
        if let Some(ended) = self.tasks.try_join_next() {
            return Some(format!("a watch ended: {ended:?}"));
        }
        let unknown = self.health.iter().find(|each| !each.is_listed() || is_outdated(each))?;
        let failure = unknown.failure().map(|failure| failure.error);
        Some(failure.unwrap_or_else(|| "nodes and pods are not listed yet".to_owned()))
    }

    /// The version of the latest pod of a hub that has a node and is counted.
    pub(super) fn own_version(&self) -> u64 {
        self.versions.own.load(Ordering::Acquire)
    }

    /// Makes something of what is counted and of the version up to which pods are.
    pub(super) fn look<T>(&self, make: impl FnOnce(&ClusterIndex, u64) -> T) -> Option<T> {
        // Read first: more may be counted than is said to be, and not less.
        let version = self.versions.all.load(Ordering::Acquire);
        self.ledger.transact(|book| book.index(OWN).map(|index| make(index, version)))
    }
}
