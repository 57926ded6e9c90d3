//! A ForeignCluster that is deleted by `kubectl` instead of `portolan unpeer`.

use super::credentials::{Stage, pass};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::conditions::ConditionType;
use portolan_api::{ForeignCluster, MultiClusterDeployment};
use portolan_sandbox::{HostileAnswer, HostileRule, RequestFilter};
use portolan_tests::simulation::apply;
use portolan_tests::{NAMESPACE, workload};
use serde_json::json;

async fn with_a_workload() -> (Stage, Api<ForeignCluster>, Api<Deployment>) {
    let stage = Stage::new(86_400).await;
    let user = stage.hub.client("user");
    apply(&user, &workload("web", 2, json!({"locations": ["paris"]}))).await;
    pass(20).await;
    assert_eq!(stage.ready("web").await.as_deref(), Some("2/2"));
    let copies = Api::namespaced(stage.world.cluster("paris").unwrap().client("user"), NAMESPACE);
    let clusters: Api<ForeignCluster> = Api::all(user);
    clusters.delete("paris", &Default::default()).await.unwrap();
    pass(20).await;
    (stage, clusters, copies)
}

#[tokio::test(start_paused = true)]
async fn a_deleted_foreign_cluster_waits_for_its_workloads_and_says_what_helps() {
    let (stage, clusters, copies) = with_a_workload().await;
    let leaving = stage.condition("paris", ConditionType::Leaving).await;
    for word in ["multiclusterdeployment/web in shop", "portolan unpeer paris --drain", "--force"] {
        assert!(leaving.message.contains(word), "{word}: {}", leaving.message);
    }
    assert!(stage.events("paris").await.iter().any(|(reason, _)| reason == "WorkloadsRemain"));
    assert!(copies.get_opt("web").await.unwrap().is_some(), "what runs goes on running");
    let workloads: Api<MultiClusterDeployment> = Api::namespaced(stage.hub.client("user"), NAMESPACE);
    workloads.delete("web", &Default::default()).await.unwrap();
    pass(30).await;
    assert!(copies.get_opt("web").await.unwrap().is_none());
    assert!(clusters.get_opt("paris").await.unwrap().is_none(), "nothing holds it up any more");
    assert!(stage.secrets().get_opt("paris").await.unwrap().is_none(), "its token is gone with it");
    assert!(stage.secrets().get_opt("rome").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_foreign_cluster_leaves_copies_running_if_it_is_told_to() {
    let (stage, clusters, copies) = with_a_workload().await;
    let orphan = Patch::Merge(json!({"metadata": {"annotations": {"portolan.dev/on-delete": "orphan"}}}));
    clusters.patch("paris", &PatchParams::default(), &orphan).await.unwrap();
    pass(20).await;
    assert!(clusters.get_opt("paris").await.unwrap().is_none());
    assert!(stage.secrets().get_opt("paris").await.unwrap().is_none());
    assert!(copies.get_opt("web").await.unwrap().is_some(), "it is left behind, and runs");
}

#[tokio::test(start_paused = true)]
async fn a_workload_and_a_member_that_is_away_can_both_be_deleted() {
    let stage = Stage::new(86_400).await;
    let user = stage.hub.client("user");
    apply(&user, &workload("web", 2, json!({"locations": ["paris"]}))).await;
    pass(20).await;
    stage.world.partition("controller", "paris");
    pass(20).await;
    let workloads: Api<MultiClusterDeployment> = Api::namespaced(user.clone(), NAMESPACE);
    workloads.delete("web", &Default::default()).await.unwrap();
    pass(20).await;
    assert!(workloads.get_opt("web").await.unwrap().is_some(), "it waits for the member");
    let clusters: Api<ForeignCluster> = Api::all(user);
    clusters.delete("paris", &Default::default()).await.unwrap();
    pass(30).await;
    assert!(clusters.get_opt("paris").await.unwrap().is_none());
    assert!(workloads.get_opt("web").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_workload_and_a_member_that_cannot_be_listed_can_both_be_deleted() {
    let mut stage = Stage::new(86_400).await;
    let user = stage.hub.client("user");
    apply(&user, &workload("web", 2, json!({"locations": ["paris"]}))).await;
    pass(20).await;
    let copies = RequestFilter::any().party("controller").resource("deployments.apps");
    let refused = HostileAnswer::refusal(403, "deployments is forbidden");
    stage.world.hostile("paris", vec![HostileRule::new(copies, refused)]);
    stage.control(None);
    pass(60).await;
    assert_eq!(stage.condition("paris", ConditionType::Reachable).await.status, "True");
    assert_eq!(stage.condition("paris", ConditionType::Ready).await.status, "False");
    let workloads: Api<MultiClusterDeployment> = Api::namespaced(user.clone(), NAMESPACE);
    workloads.delete("web", &Default::default()).await.unwrap();
    pass(20).await;
    assert!(workloads.get_opt("web").await.unwrap().is_some(), "it waits for the member");
    let clusters: Api<ForeignCluster> = Api::all(user);
    clusters.delete("paris", &Default::default()).await.unwrap();
    pass(30).await;
    assert!(clusters.get_opt("paris").await.unwrap().is_none());
    assert!(workloads.get_opt("web").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_workload_that_cannot_be_read_holds_up_no_other_member() {
    let stage = Stage::new(86_400).await;
    let user = stage.hub.client("user");
    apply(&user, &workload("web", 2, json!({"locations": ["rome"]}))).await;
    pass(20).await;
    let lists = RequestFilter::any().party("controller").resource("multiclusterdeployments.portolan.dev");
    let unreadable = HostileAnswer::edit(|object| object["spec"]["replicas"] = json!("many"));
    stage.world.hostile("hub", vec![HostileRule::new(lists, unreadable)]);
    let clusters: Api<ForeignCluster> = Api::all(user);
    for name in ["paris", "rome"] {
        clusters.delete(name, &Default::default()).await.unwrap();
    }
    pass(30).await;
    assert!(clusters.get_opt("paris").await.unwrap().is_none());
    let leaving = stage.condition("rome", ConditionType::Leaving).await;
    assert!(leaving.message.contains("multiclusterdeployment/web in shop"), "{}", leaving.message);
}
