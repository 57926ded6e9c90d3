//! What the tests on the sandbox share: a small fleet, and what can be done and seen in it.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::conditions::ConditionType;
use portolan_api::{MultiClusterDeployment, MultiClusterDeploymentStatus, conditions};
use portolan_runtime::Seed;
use portolan_sandbox::{FaultPlan, NodeConfig, World, WorldConfig};
use portolan_tests::NAMESPACE;
use portolan_tests::simulation::{Contender, Fleet};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Two members: c2 with two CPUs, c3 with three. No controller yet.
pub(crate) async fn fleet(faults: FaultPlan) -> Fleet {
    let start = Timestamp::from_second(1_800_000_000).unwrap();
    let world = World::new(WorldConfig { seed: 1, start, faults, ..WorldConfig::default() });
    Fleet::new(world, &[("c2", 1, NodeConfig::new("2", "8Gi")), ("c3", 1, NodeConfig::new("3", "8Gi"))]).await
}

/// Members of so many nodes of so many CPUs. No controller yet.
pub(crate) async fn fleet_of(members: &[(&str, usize, &str)], faults: FaultPlan) -> Fleet {
    let node = |cpu: &str| NodeConfig::new(cpu, "8Gi");
    let members: Vec<_> = members.iter().map(|(name, nodes, cpu)| (*name, *nodes, node(cpu))).collect();
    fleet_with(&members, faults).await
}

/// Members of so many nodes of a kind. No controller yet.
pub(crate) async fn fleet_with(members: &[(&str, usize, NodeConfig)], faults: FaultPlan) -> Fleet {
    let start = Timestamp::from_second(1_800_000_000).unwrap();
    let world = World::new(WorldConfig { seed: 1, start, faults, ..WorldConfig::default() });
    Fleet::new(world, members).await
}

/// The fleet, and the only controller at work.
pub(crate) async fn start() -> (Fleet, JoinHandle<()>) {
    let fleet = fleet(FaultPlan::none()).await;
    let controller = contend(&fleet, Contender::alone());
    (fleet, controller)
}

/// Starts a process of controllers.
pub(crate) fn contend(fleet: &Fleet, contender: Contender) -> JoinHandle<()> {
    tokio::spawn(contender.run(fleet.world.clone(), fleet.hub.clone(), Seed::new(1)))
}

pub(crate) fn workloads(fleet: &Fleet) -> Api<MultiClusterDeployment> {
    Api::namespaced(fleet.hub.client("user"), NAMESPACE)
}

pub(crate) fn deployments(fleet: &Fleet, member: usize) -> Api<Deployment> {
    Api::namespaced(fleet.members[member].client("user"), NAMESPACE)
}

pub(crate) async fn status(fleet: &Fleet, name: &str) -> MultiClusterDeploymentStatus {
    workloads(fleet).get(name).await.unwrap().status.unwrap_or_default()
}

/// Reason and message of a condition that must be there.
pub(crate) async fn condition(fleet: &Fleet, name: &str, type_: ConditionType) -> (String, String, String) {
    let status = status(fleet, name).await;
    let found = conditions::find(&status.conditions, type_).cloned();
    assert!(found.is_some(), "{name} has no condition {type_}: {:?}", status.conditions);
    let found = found.unwrap();
    (found.status, found.reason, found.message)
}

pub(crate) async fn replicas(fleet: &Fleet, member: usize, name: &str) -> Option<i32> {
    deployments(fleet, member).get_opt(name).await.unwrap().and_then(|deployment| deployment.spec?.replicas)
}

pub(crate) async fn patch(fleet: &Fleet, name: &str, spec: Value) {
    let patch = Patch::Merge(json!({ "spec": spec }));
    workloads(fleet).patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// The reasons of the events about a workload.
pub(crate) async fn events(fleet: &Fleet, name: &str) -> Vec<String> {
    let api: Api<Event> = Api::namespaced(fleet.hub.client("user"), NAMESPACE);
    let all = api.list(&Default::default()).await.unwrap().items;
    let about = |event: &Event| event.regarding.as_ref().and_then(|about| about.name.clone());
    all.iter()
        .filter(|event| about(event).as_deref() == Some(name))
        .filter_map(|event| event.reason.clone())
        .collect()
}

/// How many replicas of a workload are ready, over all members.
pub(crate) async fn ready(fleet: &Fleet, name: &str) -> i32 {
    let mut ready = 0;
    for member in 0..fleet.members.len() {
        let copy = deployments(fleet, member).get_opt(name).await.unwrap();
        ready += copy.and_then(|copy| copy.status?.ready_replicas).unwrap_or(0);
    }
    ready
}

pub(crate) fn asking(cpu: &str) -> Value {
    json!([{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}])
}

pub(crate) async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}
