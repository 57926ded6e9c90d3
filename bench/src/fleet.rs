//! Sandbox clusters with Portolan at work on them, on the real clock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DynamicObject, WatchEvent, WatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use portolan_api::{ForeignCluster, MultiClusterDeployment};
use portolan_runtime::Seed;
use portolan_sandbox::{NodeConfig, World, WorldConfig};
use portolan_tests::simulation::Fleet;
use portolan_tests::{NAMESPACE, workload};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(300);
const OFTEN: Duration = Duration::from_millis(5);

/// A fleet at work.
pub(crate) struct Stage {
    pub(crate) fleet: Fleet,
    /// When each Deployment first appeared in a member, by name.
    arrived: Arc<Mutex<BTreeMap<String, Instant>>>,
}

impl Stage {
    /// Members `m1`, `m2` and so on, with Portolan running.
    pub(crate) async fn open(members: usize, nodes: usize, node: NodeConfig) -> Result<Self> {
        let world = World::new(WorldConfig { start: Timestamp::now(), ..WorldConfig::default() });
        let names: Vec<String> = (1..=members).map(|number| format!("m{number}")).collect();
        let members: Vec<_> = names.iter().map(|name| (name.as_str(), nodes, node.clone())).collect();
        let fleet = Fleet::new(world.clone(), &members).await;
        tokio::spawn(Fleet::control(world, fleet.hub.clone(), Seed::new(1)));
        let stage = Self { fleet, arrived: Arc::default() };
        let clusters: Api<ForeignCluster> = Api::all(stage.user());
        stage
            .until("all members are known", async || {
                let found = clusters.list(&Default::default()).await?.items;
                Ok(found.iter().all(|cluster| {
                    let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
                    conditions.into_iter().any(|each| each.type_ == "Ready" && each.status == "True")
                }))
            })
            .await?;
        Ok(stage)
    }

    pub(crate) fn user(&self) -> Client {
        self.fleet.hub.client("user")
    }

    /// Creates a workload; the moment before is what its times are counted from.
    pub(crate) async fn create(&self, name: &str, replicas: i32, spec: Value) -> Result<Instant> {
        create(&self.user(), name, replicas, spec).await
    }

    /// Notes from now on when Deployments come to members.
    pub(crate) fn note_arrivals(&self) {
        for member in &self.fleet.members {
            tokio::spawn(note_arrivals(member.client("watcher"), self.arrived.clone()));
        }
    }

    /// When the Deployment of that name came to a member, if that was noted.
    pub(crate) fn arrival(&self, name: &str) -> Option<Instant> {
        self.arrivals().get(name).copied()
    }

    fn arrivals(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many objects of a resource the members have together.
    pub(crate) fn in_members(&self, group: &str, plural: &str) -> usize {
        self.fleet.members.iter().map(|member| member.count(group, plural)).sum()
    }

    /// Looks until it is so.
    pub(crate) async fn until(&self, what: &str, mut look: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
        let started = Instant::now();
        while !look().await? {
            if started.elapsed() > LIMIT {
                bail!(
                    "waited {LIMIT:?} in vain until {what}: {} Deployments and {} pods in the members",
                    self.in_members("apps", "deployments"),
                    self.in_members("", "pods")
                );
            }
            tokio::time::sleep(OFTEN).await;
        }
        Ok(())
    }
}

/// Creates a workload as a user does.
pub(crate) async fn create(client: &Client, name: &str, replicas: i32, spec: Value) -> Result<Instant> {
    let resource =
        ApiResource::from_gvk(&GroupVersionKind::gvk("portolan.dev", "v1alpha1", "MultiClusterDeployment"));
    let workloads: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &resource);
    let object = serde_json::from_value(workload(name, replicas, spec))?;
    let started = Instant::now();
    workloads.create(&Default::default(), &object).await?;
    Ok(started)
}

/// How many workloads say that all their replicas are ready.
pub(crate) async fn ready(client: &Client) -> Result<usize> {
    let workloads: Api<MultiClusterDeployment> = Api::all(client.clone());
    let found = workloads.list(&Default::default()).await?.items;
    let is_ready = |workload: &&MultiClusterDeployment| {
        let conditions = workload.status.iter().flat_map(|status| &status.conditions);
        conditions.into_iter().any(|each| each.type_ == "Ready" && each.status == "True")
    };
    Ok(found.iter().filter(is_ready).count())
}

async fn note_arrivals(client: Client, arrived: Arc<Mutex<BTreeMap<String, Instant>>>) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(client, NAMESPACE);
    loop {
        let mut events = deployments.watch_metadata(&WatchParams::default(), "0").await?.boxed();
        while let Ok(Some(event)) = events.try_next().await {
            if let WatchEvent::Added(found) = event {
                let name = found.metadata.name.unwrap_or_default();
                arrived
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .entry(name)
                    .or_insert_with(Instant::now);
            }
        }
    }
}
