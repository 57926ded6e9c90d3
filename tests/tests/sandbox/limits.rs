//! What members and users may write, and how large things may get.

use crate::stage::{asking, condition, contend, deployments, fleet, pass, patch, start, status};
use portolan_api::conditions::ConditionType;
use portolan_sandbox::FaultPlan;
use portolan_tests::simulation::{Contender, apply};
use portolan_tests::workload;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn two_containers_of_one_image_are_placed_and_scaled() {
    let (fleet, _controller) = start().await;
    let mut web = workload("web", 1, json!({"locations": ["c2"]}));
    let container = |name: &str| json!({"name": name, "image": "app:1"});
    web["spec"]["template"]["spec"]["containers"] = json!([container("web"), container("worker")]);
    apply(&fleet.hub.client("user"), &web).await;
    pass(10).await;
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("1/1"));
    patch(&fleet, "web", json!({"replicas": 2})).await;
    pass(10).await;
    let scaled = status(&fleet, "web").await;
    assert_eq!(scaled.ready_summary.as_deref(), Some("2/2"));
    assert_eq!(scaled.placements[0].images, ["app:1"]);
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_lost_its_label_gets_it_back() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &workload("web", 1, json!({"locations": ["c2"]}))).await;
    pass(10).await;
    let uid = deployments(&fleet, 0).get("web").await.unwrap().metadata.uid;
    for label in ["portolan.dev/workload", "portolan.dev/hub"] {
        let patch = kube::api::Patch::Merge(json!({"metadata": {"labels": {label: null}}}));
        deployments(&fleet, 0).patch("web", &Default::default(), &patch).await.unwrap();
        pass(10).await;
        let copy = deployments(&fleet, 0).get("web").await.unwrap();
        assert_eq!(copy.metadata.uid, uid, "it is not deleted for {label}");
        assert!(copy.metadata.labels.unwrap().contains_key(label), "{label} is back");
        assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("1/1"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_pending_replica_among_a_thousand_clusters_is_told_in_a_status_that_fits() {
    let fleet = fleet(FaultPlan::none()).await;
    let user = fleet.hub.client("user");
    for index in 0..1000 {
        apply(&user, &portolan_tests::foreign_cluster(&format!("cluster-far-away-{index:04}"))).await;
    }
    let _controller = contend(&fleet, Contender::alone());
    let mut web = workload("web", 2, json!({"placementPolicy": "worst-fit", "numberOfLocations": 2}));
    web["spec"]["template"]["spec"]["containers"] = asking("1500m");
    apply(&user, &web).await;
    pass(30).await;
    let told = status(&fleet, "web").await;
    assert!(told.ready_replicas > 0 && told.pending_replicas > 0, "{:?}", told.ready_summary);
    let (_, _, message) = condition(&fleet, "web", ConditionType::Placed).await;
    assert!(message.contains(" more: ") && message.contains("NotConnected"), "{message}");
    assert!(message.len() < 4096 && told.pending.len() <= 32, "{} {}", message.len(), told.pending.len());
}
