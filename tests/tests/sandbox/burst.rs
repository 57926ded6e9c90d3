//! Bursts to a simulated cloud behind Cluster API, from the first pod that waits to the last machine that goes.

use crate::provision::{CLOUDS, Stage, bursting, provisioner};
use crate::stage::pass;
use portolan_api::cloudprovisioner::CloudPhase;
use portolan_sandbox::{BootTime, CloudApi, CloudConfig, CloudFailure, CloudMachine, FaultPlan, NodeConfig};
use portolan_tests::simulation::apply;
use portolan_tests::simulation::elastic::cluster_class;
use serde_json::json;
use std::collections::BTreeSet;

/// A stage with a cloud whose machines of four CPUs boot in 50 seconds, after a control plane that takes 80.
pub(crate) async fn start(faults: FaultPlan) -> (Stage, CloudApi) {
    let stage = Stage::with(faults).await;
    let machine = CloudMachine::new(NodeConfig::new("4", "8Gi")).boot(BootTime::exactly(50)).price(50_000);
    let large = CloudMachine::new(NodeConfig::new("8", "16Gi")).boot(BootTime::exactly(50)).price(90_000);
    let config = CloudConfig {
        infrastructure: BootTime::exactly(10),
        control_plane: BootTime::exactly(80),
        control_plane_price: 10_000,
        ..CloudConfig::default().machine_type("small", machine).machine_type("large", large)
    };
    let cloud = CloudApi::install(&stage.world, &stage.hub, config).await.unwrap();
    let user = stage.hub.client("user");
    apply(&user, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CLOUDS}})).await;
    for object in cluster_class() {
        apply(&user, &object).await;
    }
    (stage, cloud)
}

/// The clusters that the cloud has ever made machines for.
pub(crate) fn made(cloud: &CloudApi) -> BTreeSet<String> {
    cloud.machines().into_iter().map(|machine| machine.cluster).collect()
}

/// How many machines run, control planes among them.
pub(crate) fn running(cloud: &CloudApi) -> usize {
    cloud.running().len()
}

pub(crate) fn placed(home: i32, cloud: i32) -> Vec<(String, i32)> {
    let all = [("cloud1".to_owned(), cloud), ("home".to_owned(), home)];
    all.into_iter().filter(|(_, replicas)| *replicas > 0).collect()
}

#[tokio::test(start_paused = true)]
async fn a_burst_grows_shrinks_and_ends_and_its_cost_is_what_the_cloud_asks() {
    let (stage, cloud) = start(FaultPlan::none()).await;
    let user = stage.hub.client("user");
    apply(&user, &provisioner("cp1", "cloud1", json!({}))).await;
    apply(&user, &bursting("web", 7)).await;
    pass(5 * 60).await;
    assert_eq!(stage.placed("web").await, placed(4, 3));
    assert_eq!(
        (stage.status("cp1").await.phase, running(&cloud)),
        (CloudPhase::Ready, 2),
        "a control plane and a node"
    );
    apply(&user, &bursting("web", 14)).await;
    pass(4 * 60).await;
    assert_eq!(stage.placed("web").await, placed(4, 10));
    assert_eq!(
        (stage.status("cp1").await.phase, running(&cloud)),
        (CloudPhase::Ready, 4),
        "no more than are needed"
    );
    apply(&user, &bursting("web", 6)).await;
    pass(9 * 60).await;
    assert_eq!(
        (stage.placed("web").await, running(&cloud)),
        (placed(4, 2), 4),
        "nodes are kept for ten minutes"
    );
    pass(6 * 60).await;
    assert_eq!((stage.placed("web").await, running(&cloud)), (placed(4, 2), 2));
    assert_eq!(stage.status("cp1").await.phase, CloudPhase::Ready);
    apply(&user, &bursting("web", 4)).await;
    pass(26 * 60).await;
    assert_eq!((stage.placed("web").await, running(&cloud)), (placed(4, 0), 0));
    let status = stage.status("cp1").await;
    assert_eq!((status.phase, status.nodes, status.bursts.len()), (CloudPhase::Idle, 0, 1));
    let (told, asked) = (status.cost_so_far.micros, cloud.cost());
    assert!(told.abs_diff(asked) * 10 < asked, "{told} was counted, and the cloud asks {asked}");
    assert_eq!(made(&cloud).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn machines_that_the_cloud_refuses_are_named_and_tried_again() {
    let (stage, cloud) = start(FaultPlan::none()).await;
    let user = stage.hub.client("user");
    cloud.refuse_clusters(Some(CloudFailure::new("QuotaExceeded", "no more networks")));
    apply(&user, &provisioner("cp1", "cloud1", json!({}))).await;
    apply(&user, &bursting("web", 6)).await;
    pass(4 * 60).await;
    let status = stage.status("cp1").await;
    assert_eq!(
        (status.phase, status.last_failure.unwrap().reason.as_str()),
        (CloudPhase::Failed, "QuotaExceeded")
    );
    assert!(stage.clusters().await.is_empty() && running(&cloud) == 0, "nothing is left of it");
    let failed = async || {
        let events = stage.events("cp1").await;
        events.iter().filter(|reason| *reason == "ProvisionFailed").count()
    };
    assert_eq!(failed().await, 1);
    pass(8 * 60).await;
    assert_eq!(failed().await, 2, "the same failure again is told again");
    cloud.refuse_clusters(None);
    pass(16 * 60).await;
    assert_eq!(stage.placed("web").await, placed(4, 2));
    assert_eq!(stage.status("cp1").await.failures, 0);
}
