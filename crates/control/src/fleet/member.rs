//! One member: its client, and what is known of it.

use super::facts::is_open;
use super::reach::probe;
use super::{DeploymentFacts, Reach};
use crate::names::{HUB_LABEL, WORKLOAD_LABEL};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_core::capacity::{NodeFacts, PodFacts};
use portolan_runtime::{Clock, Index, Key, Seed, feed};
use std::sync::Arc;
use tokio::task::JoinSet;

/// What has changed in a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touched {
    /// A copy of a workload: the workload's key in the hub.
    Workload(Key),
    /// Nodes, pods or namespaces: there may be room now.
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
    /// Its nodes.
    pub nodes: Index<NodeFacts>,
    /// Its pods.
    pub pods: Index<PodFacts>,
    /// Its Deployments that this hub has placed there.
    pub deployments: Index<DeploymentFacts>,
    /// Its namespaces, and whether each lets workloads in.
    pub namespaces: Index<bool>,
    /// Whether it answers.
    pub reach: Reach,
    _tasks: JoinSet<()>,
}

impl Member {
    /// Starts watching a member, for the hub of this identity.
    #[must_use]
    pub fn watch(
        name: &str,
        client: Client,
        hub: &str,
        clock: &Clock,
        seed: Seed,
        touched: impl Fn(Touched) + Clone + Send + Sync + 'static,
    ) -> Self {
        let (nodes, pods, deployments, namespaces) =
            (Index::default(), Index::default(), Index::<DeploymentFacts>::default(), Index::default());
        let reach = Reach::default();
        let mut tasks = JoinSet::new();
        let room = {
            let touched = touched.clone();
            move |_: &Key| touched(Touched::Room)
        };
        let all = watcher::Config::default;
        tasks.spawn(feed(
            Api::<Node>::all(client.clone()),
            all(),
            |node| NodeFacts::of(&node),
            nodes.clone(),
            room.clone(),
            seed.child("nodes"),
        ));
        tasks.spawn(feed(
            Api::<Pod>::all(client.clone()),
            all(),
            |pod| PodFacts::of(&pod, WORKLOAD_LABEL),
            pods.clone(),
            room.clone(),
            seed.child("pods"),
        ));
        tasks.spawn(feed(
            Api::<Namespace>::all(client.clone()),
            all(),
            |namespace| is_open(&namespace),
            namespaces.clone(),
            room,
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
        Self { name: name.to_owned(), client, nodes, pods, deployments, namespaces, reach, _tasks: tasks }
    }

    /// Whether everything that a decision needs has been listed once.
    #[must_use]
    pub fn known(&self) -> bool {
        self.nodes.synced() && self.pods.synced() && self.namespaces.synced() && self.deployments.synced()
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
