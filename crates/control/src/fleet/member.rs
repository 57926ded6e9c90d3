//! One member: its client, and what is known of it.

use super::facts::is_open;
use super::reach::probe;
use super::{DeploymentFacts, Reach};
use crate::capacity::{ClusterFeed, Ledger, Listed};
use crate::names::{HUB_LABEL, WORKLOAD_LABEL};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_core::capacity::{NodeFacts, PodFacts};
use portolan_runtime::{Clock, Index, Key, Seed, feed, follow};
use std::sync::Arc;
use tokio::task::JoinSet;

/// What has changed in a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touched {
    /// A copy of a workload: the workload's key in the hub.
    Workload(Key),
    /// Namespaces: some may be open now.
    Room,
    /// It fell silent, or answers again.
    Reach,
}

/// A cluster of the fleet, watched for as long as this is kept.
pub struct Member {
    /// The name of its ForeignCluster.
    pub name: String,
    /// A client for it.
    pub client: Client,
    /// Its Deployments that this hub has placed there.
    pub deployments: Index<DeploymentFacts>,
    /// Its namespaces, and whether each lets workloads in.
    pub namespaces: Index<bool>,
    /// Whether it answers.
    pub reach: Reach,
    listed: Listed,
    _room: Arc<ClusterFeed>,
    _tasks: JoinSet<()>,
}

impl Member {
    /// Starts watching a member, for the hub of this identity. Its nodes and pods go to the ledger.
    #[must_use]
    pub fn watch(
        name: &str,
        client: Client,
        hub: &str,
        ledger: &Ledger,
        clock: &Clock,
        seed: Seed,
        touched: impl Fn(Touched) + Clone + Send + Sync + 'static,
    ) -> Self {
        let (deployments, namespaces) = (Index::<DeploymentFacts>::default(), Index::default());
        let room = ledger.open(name);
        let reach = Reach::default();
        let mut tasks = JoinSet::new();
        let opened = {
            let touched = touched.clone();
            move |_: &Key| touched(Touched::Room)
        };
        let all = watcher::Config::default;
        let (nodes, pods) = (Arc::clone(&room), Arc::clone(&room));
        tasks.spawn(follow(
            Api::<Node>::all(client.clone()),
            all(),
            |node| NodeFacts::of(&node),
            move |change| nodes.nodes(change),
            seed.child("nodes"),
        ));
        tasks.spawn(follow(
            Api::<Pod>::all(client.clone()),
            all(),
            |pod| PodFacts::of(&pod, WORKLOAD_LABEL),
            move |change| pods.pods(change),
            seed.child("pods"),
        ));
        tasks.spawn(feed(
            Api::<Namespace>::all(client.clone()),
            all(),
            |namespace| is_open(&namespace),
            namespaces.clone(),
            opened,
            seed.child("namespaces"),
        ));
        let owners = Owners::new(deployments.clone(), touched.clone());
        tasks.spawn(feed(
            Api::<Deployment>::all(client.clone()),
            all().labels(&format!("{HUB_LABEL}={hub}")),
            |deployment| DeploymentFacts::of(&deployment),
            deployments.clone(),
            move |key| owners.touch(key),
            seed.child("deployments"),
        ));
        tasks.spawn(probe(client.clone(), reach.clone(), touched, clock.clone()));
        let listed = room.listed();
        Self {
            name: name.to_owned(),
            client,
            deployments,
            namespaces,
            reach,
            listed,
            _room: room,
            _tasks: tasks,
        }
    }

    /// Whether everything that a decision needs has been listed once.
    #[must_use]
    pub fn known(&self) -> bool {
        self.listed.all() && self.namespaces.synced() && self.deployments.synced()
    }
}

/// Finds the workload of a Deployment that changed. A copy has the name of its workload, so that one that is gone is
/// still found.
struct Owners<F> {
    deployments: Index<DeploymentFacts>,
    touched: Arc<F>,
}

impl<F: Fn(Touched)> Owners<F> {
    fn new(deployments: Index<DeploymentFacts>, touched: F) -> Self {
        Self { deployments, touched: Arc::new(touched) }
    }

    fn touch(&self, key: &Key) {
        let owner = self.deployments.get(key).and_then(|facts| facts.owner.clone());
        (self.touched)(Touched::Workload(owner.unwrap_or_else(|| key.clone())));
    }
}
