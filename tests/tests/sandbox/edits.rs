//! No edit loses what runs: what cannot be satisfied keeps the running replicas, and says so.

use crate::stage::{
    asking, condition, contend, deployments, events, fleet_of, pass, patch, ready, replicas, status,
    workloads,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::ForeignCluster;
use portolan_api::conditions::ConditionType;
use portolan_api::placement::PlacementState;
use portolan_sandbox::{FaultAnswer, FaultPlan, PartialFault, RequestFilter};
use portolan_tests::simulation::{CONTROLLER, Contender, Fleet, apply};
use portolan_tests::{NAMESPACE, foreign_cluster, workload};
use serde_json::{Value, json};

/// Members of one node with so many CPUs, the controller at work, and `web` with two replicas in the first one.
async fn running(members: &[(&str, usize, &str)], wish: Value) -> Fleet {
    let fleet = fleet_of(members, FaultPlan::none()).await;
    drop(contend(&fleet, Contender::alone()));
    let mut object = workload("web", 2, wish);
    object["spec"]["template"]["spec"]["containers"] = asking("50m");
    apply(&fleet.hub.client("user"), &object).await;
    pass(20).await;
    assert_eq!(replicas(&fleet, 0, "web").await, Some(2));
    assert!(ready(&fleet, "web").await >= 2);
    fleet
}

/// Whether the two replicas of `web` in the first member run on, ready, at every look.
async fn stays_ready(fleet: &Fleet) {
    for second in 0..40 {
        assert_eq!(ready(fleet, "web").await, 2, "after {second} s");
        pass(1).await;
    }
    assert_eq!(replicas(fleet, 0, "web").await, Some(2));
}

async fn cordon(fleet: &Fleet, member: usize) {
    let nodes: Api<Node> = Api::all(fleet.members[member].client("user"));
    for node in nodes.list(&Default::default()).await.unwrap() {
        let cordon = Patch::Merge(json!({"spec": {"unschedulable": true}}));
        nodes.patch(&node.metadata.name.unwrap(), &PatchParams::default(), &cordon).await.unwrap();
    }
}

async fn close_namespace(fleet: &Fleet, member: usize) {
    let namespaces: Api<Namespace> = Api::all(fleet.members[member].client("user"));
    let close = Patch::Merge(json!({"metadata": {"labels": {"portolan.dev/placement": null}}}));
    namespaces.patch(NAMESPACE, &PatchParams::default(), &close).await.unwrap();
}

async fn image(fleet: &Fleet, member: usize) -> (Option<String>, Option<String>) {
    let copy: Deployment = deployments(fleet, member).get("web").await.unwrap();
    let container = copy.spec.unwrap().template.spec.unwrap().containers.remove(0);
    let cpu =
        container.resources.and_then(|resources| resources.requests?.get("cpu").map(|cpu| cpu.0.clone()));
    (container.image, cpu)
}

#[tokio::test(start_paused = true)]
async fn a_request_that_fits_nowhere_keeps_the_former_template_running() {
    for wish in [json!({"locations": ["a"]}), json!({"placementPolicy": "worst-fit"})] {
        let fleet = running(&[("a", 1, "4"), ("b", 1, "2")], wish).await;
        patch(&fleet, "web", json!({"template": {"spec": {"containers": asking("50")}}})).await;
        stays_ready(&fleet).await;
        assert_eq!(image(&fleet, 0).await.1.as_deref(), Some("50m"));
        let (placed, reason, message) = condition(&fleet, "web", ConditionType::Placed).await;
        assert_eq!((placed.as_str(), reason.as_str()), ("False", "ReplicasKept"));
        assert!(message.contains("a: a replica needs cpu 50"), "{message}");
        let (is_ready, reason, _) = condition(&fleet, "web", ConditionType::Ready).await;
        assert_eq!((is_ready.as_str(), reason.as_str()), ("False", "ReplicasKept"));
        assert!(events(&fleet, "web").await.contains(&"ReplicasKept".to_owned()));
        let kept = &status(&fleet, "web").await.placements[0];
        assert_eq!((kept.state, kept.ready_replicas), (PlacementState::Applied, 2));
        assert!(kept.message.as_deref().unwrap_or_default().contains("former template"), "{kept:?}");
        // Mended, it is rolled out.
        patch(&fleet, "web", json!({"template": {"spec": {"containers": asking("60m")}}})).await;
        pass(40).await;
        assert_eq!(image(&fleet, 0).await.1.as_deref(), Some("60m"));
        assert_eq!(condition(&fleet, "web", ConditionType::Ready).await.0, "True");
    }
}

#[tokio::test(start_paused = true)]
async fn memory_that_fits_nowhere_keeps_the_former_template_running() {
    let fleet = running(&[("a", 1, "4")], json!({"locations": ["a"]})).await;
    let large = json!([{"name": "main", "image": "app:1", "resources": {"requests": {"memory": "32Gi"}}}]);
    patch(&fleet, "web", json!({"template": {"spec": {"containers": large}}})).await;
    stays_ready(&fleet).await;
}

#[tokio::test(start_paused = true)]
async fn a_mistyped_location_keeps_what_runs_and_an_image_still_reaches_it() {
    let fleet = running(&[("a", 1, "4"), ("b", 1, "4")], json!({"locations": ["a"]})).await;
    patch(&fleet, "web", json!({"locations": ["aa"]})).await;
    stays_ready(&fleet).await;
    let (_, reason, message) = condition(&fleet, "web", ConditionType::Placed).await;
    assert_eq!(reason, "ReplicasKept");
    assert!(message.contains("aa: no ForeignCluster has this name"), "{message}");
    let containers = json!([{"name": "main", "image": "app:2"}]);
    patch(&fleet, "web", json!({"template": {"spec": {"containers": containers}}})).await;
    pass(40).await;
    assert_eq!(image(&fleet, 0).await.0.as_deref(), Some("app:2"), "it has room where it stays");
    patch(&fleet, "web", json!({"locations": ["b"]})).await;
    pass(60).await;
    assert_eq!((replicas(&fleet, 0, "web").await, replicas(&fleet, 1, "web").await), (None, Some(2)));
}

#[tokio::test(start_paused = true)]
async fn a_move_to_a_cluster_that_takes_nothing_keeps_what_runs() {
    for closed in [true, false] {
        let fleet = running(&[("a", 1, "4"), ("b", 1, "4")], json!({"locations": ["a"]})).await;
        if closed {
            close_namespace(&fleet, 1).await;
        } else {
            cordon(&fleet, 1).await;
        }
        pass(5).await;
        patch(&fleet, "web", json!({"locations": ["b"]})).await;
        stays_ready(&fleet).await;
        assert_eq!(replicas(&fleet, 1, "web").await, None);
        patch(&fleet, "web", json!({"replicas": 1})).await;
        pass(20).await;
        assert_eq!(replicas(&fleet, 0, "web").await, Some(1), "fewer may be asked for all the same");
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_gone_do_not_take_the_copy_with_them() {
    let fleet = running(&[("a", 1, "4"), ("b", 1, "4")], json!({"locations": ["a"]})).await;
    let before = deployments(&fleet, 0).get("web").await.unwrap().metadata.uid;
    fleet.members[0].fail_node("a-1");
    pass(120).await;
    let copy = deployments(&fleet, 0).get("web").await.unwrap();
    assert_eq!((copy.metadata.uid, copy.spec.unwrap().replicas), (before, Some(2)));
    fleet.members[0].restore_node("a-1");
    pass(120).await;
    assert_eq!(ready(&fleet, "web").await, 2);
    assert_eq!(condition(&fleet, "web", ConditionType::Ready).await.0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_removed_location_goes_although_another_one_is_silent() {
    let wish = json!({"locations": ["a", "b", "c"]});
    let fleet = running(&[("a", 1, "4"), ("b", 1, "4"), ("c", 1, "4")], wish).await;
    assert_eq!(ready(&fleet, "web").await, 6);
    fleet.world.partition(CONTROLLER, "b");
    pass(30).await;
    patch(&fleet, "web", json!({"locations": ["a", "b"]})).await;
    pass(20).await;
    assert_eq!(replicas(&fleet, 2, "web").await, None);
    assert_eq!(replicas(&fleet, 1, "web").await, Some(2), "what is silent is left alone");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_deleted_in_a_member_holds_nothing() {
    let wish = json!({"locations": ["a"], "enableSubstitution": true});
    let fleet = running(&[("a", 1, "4"), ("b", 1, "4")], wish).await;
    let namespaces: Api<Namespace> = Api::all(fleet.members[0].client("user"));
    namespaces.delete(NAMESPACE, &Default::default()).await.unwrap();
    pass(60).await;
    assert_eq!(replicas(&fleet, 1, "web").await, Some(2), "{:?}", status(&fleet, "web").await.placements);
    assert_eq!(condition(&fleet, "web", ConditionType::Ready).await.0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_policy_goes_past_a_cluster_where_the_name_is_taken() {
    let fleet = fleet_of(&[("a", 1, "8"), ("b", 1, "4")], FaultPlan::none()).await;
    let theirs = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "theirs"}}, "template": {
            "metadata": {"labels": {"app": "theirs"}},
            "spec": {"containers": [{"name": "main", "image": "theirs:1"}]},
        }},
    });
    apply(&fleet.members[0].client("user"), &theirs).await;
    drop(contend(&fleet, Contender::alone()));
    apply(&fleet.hub.client("user"), &workload("web", 2, json!({"placementPolicy": "worst-fit"}))).await;
    pass(30).await;
    assert_eq!(replicas(&fleet, 1, "web").await, Some(2));
    assert_eq!(condition(&fleet, "web", ConditionType::Ready).await.0, "True");
    let theirs = deployments(&fleet, 0).get("web").await.unwrap();
    assert_eq!(theirs.spec.unwrap().replicas, Some(1), "what is not ours is left alone");
}

#[tokio::test(start_paused = true)]
async fn a_cordoned_member_that_is_drained_is_emptied() {
    let fleet = running(&[("a", 1, "4"), ("b", 1, "2")], json!({"placementPolicy": "worst-fit"})).await;
    let mut foreign = foreign_cluster("a");
    foreign["spec"]["unschedulable"] = json!(true);
    foreign["spec"]["taints"] = json!([{"key": "portolan.dev/leaving", "effect": "NoExecute"}]);
    apply(&fleet.hub.client("user"), &foreign).await;
    for _ in 0..60 {
        assert!(ready(&fleet, "web").await >= 2);
        pass(1).await;
    }
    assert_eq!((replicas(&fleet, 0, "web").await, replicas(&fleet, 1, "web").await), (None, Some(2)));
}

#[tokio::test(start_paused = true)]
async fn a_taint_that_evicts_where_nobody_else_has_room_loses_nothing() {
    let fleet = running(&[("a", 1, "4")], json!({"placementPolicy": "worst-fit"})).await;
    let clusters: Api<ForeignCluster> = Api::all(fleet.hub.client("user"));
    let taint = json!({"spec": {"taints": [{"key": "out", "effect": "NoExecute"}]}});
    clusters.patch("a", &PatchParams::default(), &Patch::Merge(taint)).await.unwrap();
    stays_ready(&fleet).await;
    assert_eq!(condition(&fleet, "web", ConditionType::Ready).await.0, "True", "its own wish is fulfilled");
    assert_eq!(condition(&fleet, "web", ConditionType::Placed).await.1, "ReplicasKept");
}

#[tokio::test(start_paused = true)]
async fn a_label_that_somebody_took_off_a_copy_is_put_back() {
    let fleet = running(&[("a", 1, "4")], json!({"locations": ["a"]})).await;
    let before = deployments(&fleet, 0).get("web").await.unwrap().metadata.uid;
    let bare = Patch::Merge(json!({"metadata": {"labels": {"portolan.dev/workload": null}}}));
    deployments(&fleet, 0).patch("web", &PatchParams::default(), &bare).await.unwrap();
    pass(20).await;
    let copy = deployments(&fleet, 0).get("web").await.unwrap();
    assert_eq!(copy.metadata.uid, before);
    let uid = workloads(&fleet).get("web").await.unwrap().metadata.uid;
    assert_eq!(copy.metadata.labels.unwrap().get("portolan.dev/workload"), uid.as_ref());
    assert_eq!(condition(&fleet, "web", ConditionType::Ready).await.0, "True");
}

#[tokio::test(start_paused = true)]
async fn while_paused_the_numbers_are_those_of_what_is_placed() {
    let fleet = running(&[("a", 1, "4")], json!({"locations": ["a"]})).await;
    patch(&fleet, "web", json!({"paused": true, "replicas": 500})).await;
    pass(20).await;
    let paused = status(&fleet, "web").await;
    assert_eq!((paused.replicas, paused.pending_replicas), (2, 498));
    assert!(paused.pending.is_empty(), "nothing was refused: {:?}", paused.pending);
    assert_eq!(replicas(&fleet, 0, "web").await, Some(2));
}

/// From now on the first member refuses changes of Deployments; what it holds runs on.
fn deny_changes(fleet: &Fleet) {
    let changes =
        RequestFilter::any().party(CONTROLLER).cluster("a").verb("patch").resource("deployments.apps");
    fleet.world.add_fault(PartialFault::new("denied", changes, FaultAnswer::Status(403)));
}

#[tokio::test(start_paused = true)]
async fn what_running_pods_refer_to_stays_while_an_edit_is_refused() {
    let fleet = running(&[("a", 1, "4")], json!({"locations": ["a"]})).await;
    let user = fleet.hub.client("user");
    for name in ["old", "new"] {
        let config = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"},
            "metadata": {"name": name, "namespace": NAMESPACE},
        });
        apply(&user, &config).await;
    }
    let referring = |name: &str| {
        let from = json!([{"configMapRef": {"name": name}}]);
        json!({"template": {"spec": {"containers": [{"name": "main", "image": "app:1", "envFrom": from}]}}})
    };
    patch(&fleet, "web", referring("old")).await;
    pass(40).await;
    let there: Api<ConfigMap> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
    assert!(there.get_opt("old").await.unwrap().is_some());
    deny_changes(&fleet);
    patch(&fleet, "web", referring("new")).await;
    pass(120).await;
    assert!(there.get_opt("old").await.unwrap().is_some(), "the pods that run refer to it");
    fleet.world.end_fault("denied");
    pass(300).await;
    assert!(there.get_opt("old").await.unwrap().is_none(), "nobody refers to it any more");
    assert!(there.get_opt("new").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_template_that_nobody_takes_is_told_soon_also_where_a_policy_chooses() {
    let fleet = running(&[("a", 1, "4"), ("b", 1, "2")], json!({"placementPolicy": "worst-fit"})).await;
    let before = fleet.world.requests(CONTROLLER);
    patch(&fleet, "web", json!({"template": {"spec": {"fieldOfTomorrow": true}}})).await;
    pass(40).await;
    // Probes and what is told of the clusters are among them.
    let requests = fleet.world.requests(CONTROLLER) - before;
    assert!(requests < 100, "{requests} requests");
    let (_, reason, message) = condition(&fleet, "web", ConditionType::Ready).await;
    assert_eq!(reason, "InvalidTemplate", "{message}");
    assert_eq!(replicas(&fleet, 0, "web").await, Some(2));
}

#[tokio::test(start_paused = true)]
async fn what_a_cordoned_member_refuses_is_not_tried_without_end() {
    let fleet = running(&[("a", 1, "4")], json!({"locations": ["a"]})).await;
    let clusters: Api<ForeignCluster> = Api::all(fleet.hub.client("user"));
    let cordon = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    clusters.patch("a", &PatchParams::default(), &cordon).await.unwrap();
    deny_changes(&fleet);
    pass(5).await;
    let before = fleet.world.requests(CONTROLLER);
    let image = json!([{"name": "main", "image": "app:2"}]);
    patch(&fleet, "web", json!({"template": {"spec": {"containers": image}}})).await;
    pass(60).await;
    let requests = fleet.world.requests(CONTROLLER) - before;
    assert!(requests < 100, "{requests} requests");
    assert_eq!(status(&fleet, "web").await.placements[0].state, PlacementState::Failed, "it is told");
    assert_eq!(ready(&fleet, "web").await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_member_whose_copies_cannot_be_read_holds_up_nobody_else() {
    let wish = json!({"locations": ["a", "b"], "driftPolicy": "Report"});
    let fleet = fleet_of(&[("a", 1, "4"), ("b", 1, "4")], FaultPlan::none()).await;
    let first = contend(&fleet, Contender::alone());
    apply(&fleet.hub.client("user"), &workload("web", 2, wish)).await;
    pass(30).await;
    first.abort();
    let reads = RequestFilter::any().party(CONTROLLER).cluster("a").verb("get").resource("deployments.apps");
    fleet.world.add_fault(PartialFault::new("unreadable", reads, FaultAnswer::Status(500)));
    let _second = contend(&fleet, Contender::alone());
    pass(30).await;
    patch(&fleet, "web", json!({"replicas": 3})).await;
    pass(60).await;
    assert_eq!(replicas(&fleet, 1, "web").await, Some(3));
}
