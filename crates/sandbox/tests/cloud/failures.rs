//! What does not come, is refused or is lost, and what a client reads of it.

use super::stage::*;
use std::time::Duration;

use super::common::code;
use kube::api::DeleteParams;
use portolan_sandbox::{
    BootTime, CloudConfig, CloudFailure, CloudMachine, FaultPlan, FaultRates, NodeConfig, World, WorldConfig,
};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_cluster_without_quota_says_why_until_there_is_some() {
    let stage = Stage::new(4, CloudConfig { max_clusters: Some(1), ..config() }).await;
    stage.create(&cluster("first", &[])).await.unwrap();
    stage
        .until("the first is available", async || is_true(&stage.get("Cluster", "first").await, "Available"))
        .await;
    stage.create(&cluster("second", &[pool("md-0", "small", 1)])).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let found = stage.get("Cluster", "second").await;
    let quota = "the quota of the cloud is 1 clusters, and 1 exist";
    assert_eq!(said(&found, "InfrastructureReady"), ("False".into(), "QuotaExceeded".into(), quota.into()));
    let (status, reason, message) = said(&found, "Available");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NotAvailable"));
    assert!(message.contains(quota), "{message}");
    assert_eq!(text(&found, "/status/phase"), "Provisioning");
    assert!(stage.machine_names().await.is_empty(), "machines wait for the control plane");
    assert!(stage.world.cluster("second").is_none());

    stage.api("Cluster").delete("first", &DeleteParams::default()).await.unwrap();
    stage.until_gone("first").await;
    stage.until_available("second", 1).await;
    // A name that the world has already is refused, and the cluster that has it stays.
    stage.api("Cluster").delete("second", &DeleteParams::default()).await.unwrap();
    stage.until_gone("second").await;
    stage.create(&cluster("hub", &[])).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(said(&stage.get("Cluster", "hub").await, "InfrastructureReady").1, "NameInUse");
    stage.api("Cluster").delete("hub", &DeleteParams::default()).await.unwrap();
    stage.until_gone("hub").await;
    assert!(stage.world.cluster("hub").is_some());
}

#[tokio::test(start_paused = true)]
async fn machines_fail_hang_and_meet_the_quota_each_in_its_own_words() {
    let broken = CloudMachine {
        fails: Some((1000, CloudFailure::new("InstanceCreateFailed", "No valid host was found"))),
        ..CloudMachine::new(NodeConfig::new("2", "4Gi"))
    };
    let hanging = CloudMachine { hangs: 1000, ..CloudMachine::new(NodeConfig::new("2", "4Gi")) };
    let config = config().machine_type("small", broken).machine_type("large", hanging);
    let stage = Stage::new(5, CloudConfig { max_machines: Some(2), ..config }).await;
    stage.create(&cluster("burst", &[pool("bad", "small", 1), pool("slow", "large", 1)])).await.unwrap();
    stage.until("both machines were tried", async || stage.cloud.running().len() == 3).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let of_pool = async |pool: &str| {
        let mut all = stage.list("Machine").await.into_iter();
        all.find(|machine| machine["metadata"]["labels"]["topology.cluster.x-k8s.io/deployment-name"] == pool)
            .unwrap()
    };
    let bad = of_pool("bad").await;
    let words = ("False".into(), "InstanceCreateFailed".into(), "No valid host was found".into());
    assert_eq!(said(&bad, "InfrastructureReady"), words);
    assert_eq!(text(&bad, "/status/phase"), "Provisioning");
    let slow = of_pool("slow").await;
    assert_eq!(text(&slow, "/status/phase"), "Provisioned");
    let (status, reason, message) = said(&slow, "NodeHealthy");
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "InspectionFailed"));
    assert!(message.starts_with("Waiting for a Node with spec.providerID sandbox://"), "{message}");
    let found = stage.get("Cluster", "burst").await;
    assert!(
        said(&found, "WorkerMachinesReady").2.contains("No valid host was found"),
        "the message comes up"
    );

    stage.create(&cluster("more", &[pool("md-0", "small", 1)])).await.unwrap();
    stage
        .until("the quota is met", async || {
            let all = stage.list("Machine").await;
            all.iter().any(|machine| said(machine, "InfrastructureReady").1 == "QuotaExceeded")
        })
        .await;
    for name in ["burst", "more"] {
        stage.api("Cluster").delete(name, &DeleteParams::default()).await.unwrap();
        stage.until_gone(name).await;
    }
    assert!(stage.cloud.running().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_never_came_is_deleted_at_once() {
    let stage = Stage::new(7, config()).await;
    stage.cloud.refuse_clusters(Some(CloudFailure::new("Unauthorized", "the credentials are not valid")));
    stage.create(&cluster("burst", &[pool("md-0", "small", 1)])).await.unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let found = stage.get("Cluster", "burst").await;
    assert_eq!(said(&found, "InfrastructureReady").2, "the credentials are not valid");
    stage.api("Cluster").delete("burst", &DeleteParams::default()).await.unwrap();
    stage.until_gone("burst").await;
    assert!(stage.cloud.machines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_topology_that_cannot_be_is_named_and_a_missing_class_too() {
    let stage = Stage::new(8, config()).await;
    stage.create(&cluster("burst", &[pool("md-0", "huge", 1)])).await.unwrap();
    let mut other = cluster("other", &[]);
    other["spec"]["topology"]["classRef"]["name"] = json!("nobody");
    stage.create(&other).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (status, reason, message) = said(&stage.get("Cluster", "burst").await, "TopologyReconciled");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "ReconcileFailed"));
    assert!(message.contains("variable \"machineType\": Unsupported value: \"huge\""), "{message}");
    let (_, reason, message) = said(&stage.get("Cluster", "other").await, "TopologyReconciled");
    assert_eq!(reason, "ReconcileFailed");
    assert!(message.contains("ClusterClass default/nobody"), "{message}");
    let mut wrong = cluster("wrong", &[]);
    wrong["spec"]["topology"]["controlPlane"] = json!({});
    assert_eq!(code(&stage.create(&wrong).await.unwrap_err()), 422, "at least one property");
    let mut empty = cluster("empty", &[pool("md-0", "small", 1)]);
    empty["spec"]["topology"]["variables"] = json!([]);
    assert_eq!(code(&stage.create(&empty).await.unwrap_err()), 422, "an empty list of variables is refused");
    let class = stage.get("ClusterClass", "sandbox").await;
    assert!(is_true(&class, "VariablesReady") && is_true(&class, "RefVersionsUpToDate"));
    let catalogue = &class["status"]["variables"][0]["definitions"][0]["schema"]["openAPIV3Schema"]["enum"];
    assert_eq!(*catalogue, json!(["small", "large"]));
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_and_a_lost_node_are_seen_and_nothing_is_removed() {
    let stage = Stage::new(10, config()).await;
    stage.create(&cluster("burst", &[pool("md-0", "small", 2)])).await.unwrap();
    stage.until_available("burst", 2).await;
    stage.world.isolate("burst");
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert!(
        is_true(&stage.get("Cluster", "burst").await, "RemoteConnectionProbe"),
        "there is a grace period"
    );
    tokio::time::sleep(Duration::from_secs(40)).await;
    let found = stage.get("Cluster", "burst").await;
    assert_eq!(said(&found, "RemoteConnectionProbe").1, "ProbeFailed");
    assert!(!is_true(&found, "Available"));
    let machine = stage.list("Machine").await.remove(0);
    let told = said(&machine, "NodeReady");
    assert_eq!((told.0.as_str(), told.1.as_str()), ("Unknown", "ConnectionDown"));
    assert_eq!(text(&machine, "/status/phase"), "Running", "the phase only says that there was a node");
    stage.world.rejoin("burst");
    stage.until_available("burst", 2).await;

    let name = text(&machine, "/metadata/name").to_owned();
    stage.world.cluster("burst").unwrap().fail_node(&name);
    stage
        .until("the node is missed", async || {
            said(&stage.get("Machine", &name).await, "NodeReady").0 == "Unknown"
        })
        .await;
    assert_eq!(said(&stage.get("Machine", &name).await, "NodeReady").1, "NodeReadyUnknown");
    assert_eq!(stage.machine_names().await.len(), 2);
    // An unhealthy machine goes before a healthy one.
    stage.scale("burst", 1).await;
    stage.until_available("burst", 1).await;
    assert!(!stage.machine_names().await.contains(&name));
}

#[tokio::test(start_paused = true)]
async fn faults_delay_cluster_api_and_nothing_is_made_twice_or_left() {
    let faults = FaultPlan::none().party("cluster-api", FaultRates::evenly(150));
    let start = "2026-01-01T00:00:00Z".parse().unwrap();
    let world = World::new(WorldConfig { seed: 13, start, faults, ..WorldConfig::default() });
    let stage = Stage::in_world(world, config()).await;
    stage.create(&cluster("burst", &[pool("md-0", "small", 3)])).await.unwrap();
    stage.until_available("burst", 3).await;
    assert_eq!(stage.list("SandboxMachine").await.len(), 3);
    assert_eq!(stage.cloud.machines().len(), 4, "three machines and the control plane, none twice");
    stage.scale("burst", 1).await;
    stage.until_available("burst", 1).await;
    stage.api("Cluster").delete("burst", &DeleteParams::default()).await.unwrap();
    stage.until_gone("burst").await;
    assert!(stage.cloud.running().is_empty() && stage.world.cluster("burst").is_none());
}

/// A burst with everything in it: the hash of its log and the lives of its machines.
async fn burst(seed: u64) -> (String, String) {
    let slow = CloudMachine { slow: (500, 3), ..CloudMachine::new(NodeConfig::new("2", "4Gi")) };
    let slow = slow.boot(BootTime::between(20, 90));
    let stage = Stage::new(seed, config().machine_type("small", slow)).await;
    stage.create(&cluster("burst", &[pool("md-0", "small", 3)])).await.unwrap();
    stage.until_available("burst", 3).await;
    stage.scale("burst", 1).await;
    stage.until_available("burst", 1).await;
    stage.api("Cluster").delete("burst", &DeleteParams::default()).await.unwrap();
    stage.until_gone("burst").await;
    (stage.world.log().hash(), format!("{:?}", stage.cloud.machines()))
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_history() {
    let first = burst(11).await;
    assert_eq!(first, burst(11).await);
    assert_ne!(first.1, burst(12).await.1, "boot times are drawn");
}
