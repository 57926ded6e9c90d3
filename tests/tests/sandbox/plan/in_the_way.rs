//! Plans where something is in the way or under way: a foreign object, copies of a former object, a move.

use super::{explain, plan, steps, there};
use crate::stage::{asking, condition, deployments, pass, start, workloads};
use kube::api::{DeleteParams, PostParams, PropagationPolicy};
use portolan_api::conditions::ConditionType;
use portolan_api::placementreview::ReviewResult;
use portolan_sandbox::{HostileAnswer, HostileRule, RequestFilter};
use portolan_tests::simulation::{CONTROLLER, Fleet, apply};
use portolan_tests::{NAMESPACE, foreign_cluster, workload};
use serde_json::{Value, json};
use std::collections::BTreeMap;

async fn placed(fleet: &Fleet, object: &Value) {
    apply(&fleet.hub.client("user"), object).await;
    pass(30).await;
}

/// A Deployment that nobody of Portolan placed.
fn foreign(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": {"app": "other"}},
            "template": {"metadata": {"labels": {"app": "other"}}, "spec": {"containers": asking("10m")}},
        },
    })
}

#[tokio::test(start_paused = true)]
async fn what_finds_its_only_place_taken_stays_where_it_runs() {
    let (fleet, _controller) = start().await;
    placed(&fleet, &workload("web", 1, json!({"locations": ["c2"]}))).await;
    apply(&fleet.members[1].client("user"), &foreign("web")).await;
    let moved = workload("web", 1, json!({"locations": ["c3"]}));
    let planned = plan(&fleet, &moved).await;
    assert_eq!(steps(&planned), BTreeMap::from([("c2", (1, 1)), ("c3", (0, 0))]), "{planned:?}");
    assert_eq!((planned.result, planned.removed_running_replicas), (ReviewResult::Pending, 0));
    assert_eq!(planned.clusters[1].refused.as_ref().unwrap().reason, "NameTaken", "{planned:?}");
    placed(&fleet, &moved).await;
    assert_eq!(deployments(&fleet, 0).get("web").await.unwrap().spec.unwrap().replicas, Some(1));
    let (_, reason, _) = condition(&fleet, "web", ConditionType::Placed).await;
    assert_eq!(reason, "ReplicasKept");
}

#[tokio::test(start_paused = true)]
async fn a_substitute_is_planned_where_a_location_refuses() {
    let (fleet, _controller) = start().await;
    apply(&fleet.members[1].client("user"), &foreign("web")).await;
    let web = workload("web", 2, json!({"locations": ["c3"], "enableSubstitution": true}));
    let planned = plan(&fleet, &web).await;
    assert_eq!(steps(&planned), BTreeMap::from([("c2", (0, 2)), ("c3", (0, 0))]), "{planned:?}");
    placed(&fleet, &web).await;
    assert_eq!(there(&fleet, "web").await["c2"].0, 2);
}

#[tokio::test(start_paused = true)]
async fn copies_that_a_deleted_workload_left_running_are_taken_over_by_the_plan_too() {
    let (fleet, _controller) = start().await;
    let web = |replicas: i32, cluster: &str| workload("web", replicas, json!({"locations": [cluster]}));
    placed(&fleet, &web(2, "c2")).await;
    let orphan =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    workloads(&fleet).delete("web", &orphan).await.unwrap();
    pass(30).await;
    assert!(workloads(&fleet).get_opt("web").await.unwrap().is_none());
    let same = plan(&fleet, &web(2, "c2")).await;
    assert_eq!((same.result, steps(&same)["c2"]), (ReviewResult::Unchanged, (2, 2)), "{same:?}");
    let moved = plan(&fleet, &web(1, "c3")).await;
    assert_eq!(steps(&moved), BTreeMap::from([("c2", (2, 0)), ("c3", (0, 1))]), "{moved:?}");
    assert_eq!((moved.result, moved.removed_running_replicas), (ReviewResult::Removes, 1), "{moved:?}");
    placed(&fleet, &web(1, "c3")).await;
    assert_eq!(there(&fleet, "web").await.keys().collect::<Vec<_>>(), ["c3"]);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_being_left_is_told() {
    let (fleet, _controller) = start().await;
    placed(&fleet, &workload("web", 3, json!({"locations": ["c2"]}))).await;
    let deletes = RequestFilter::any().party(CONTROLLER).verb("delete").resource("deployments.apps");
    let denied = HostileAnswer::refusal(403, "deployments is forbidden");
    fleet.world.hostile("c2", vec![HostileRule::new(deletes, denied)]);
    let moved = workload("web", 3, json!({"locations": ["c3"]}));
    placed(&fleet, &moved).await;
    let planned = plan(&fleet, &moved).await;
    assert_eq!(steps(&planned), BTreeMap::from([("c2", (3, 0)), ("c3", (3, 3))]), "{planned:?}");
    assert_eq!((planned.result, planned.removed_running_replicas), (ReviewResult::Changes, 0), "{planned:?}");
    let fewer = plan(&fleet, &workload("web", 1, json!({"locations": ["c3"]}))).await;
    assert_eq!((fewer.result, fewer.removed_running_replicas), (ReviewResult::Removes, 2), "{fewer:?}");
}

#[tokio::test(start_paused = true)]
async fn a_mark_to_adopt_on_a_workload_that_is_placed_holds_nothing_up() {
    let (fleet, _controller) = start().await;
    placed(&fleet, &workload("web", 2, json!({"locations": ["c2"]}))).await;
    let mut marked = workload("web", 3, json!({"locations": ["c2"]}));
    marked["metadata"]["annotations"] = json!({"portolan.dev/adopt": "unmanaged"});
    let planned = plan(&fleet, &marked).await;
    assert_eq!((planned.result, steps(&planned)["c2"]), (ReviewResult::Changes, (2, 3)), "{planned:?}");
    placed(&fleet, &marked).await;
    assert_eq!(there(&fleet, "web").await["c2"].0, 3);
}

#[tokio::test(start_paused = true)]
async fn a_mark_to_adopt_outlives_a_manifest_with_annotations_of_its_own() {
    let (fleet, _controller) = start().await;
    apply(&fleet.members[0].client("user"), &foreign("web")).await;
    let mut web = workload("web", 2, json!({"locations": ["c2"]}));
    web["metadata"]["annotations"] = json!({"portolan.dev/adopt": "unmanaged"});
    // As `portolan adopt --create` does.
    let object = serde_json::from_value(web.clone()).unwrap();
    workloads(&fleet).create(&PostParams::default(), &object).await.unwrap();
    pass(20).await;
    web["metadata"]["annotations"] = json!({"team": "a"});
    let planned = plan(&fleet, &web).await;
    assert_eq!(planned.result, ReviewResult::Pending, "{planned:?}");
    assert_eq!(planned.errors[0].reason, "NotAdopted", "{planned:?}");
    assert!(planned.clusters.is_empty(), "{planned:?}");
}

#[tokio::test(start_paused = true)]
async fn an_update_does_not_wait_for_pods_that_have_no_node() {
    let (fleet, _controller) = start().await;
    let mut cluster = foreign_cluster("c2");
    cluster["spec"]["capacity"] = json!({"countRoom": false});
    apply(&fleet.hub.client("user"), &cluster).await;
    let sized = |cpu: &str, image: &str| {
        let mut object = workload("web", 1, json!({"locations": ["c2"]}));
        object["spec"]["template"]["spec"]["containers"] = asking(cpu);
        object["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        object["spec"]["strategy"] = json!({"rollingUpdate": {"maxUnavailable": 0}});
        object
    };
    // Nodes of two CPUs.
    placed(&fleet, &sized("50", "app:1")).await;
    let planned = plan(&fleet, &sized("50", "app:2")).await;
    assert_eq!((steps(&planned)["c2"], planned.clusters[0].replaced_pods), ((1, 1), Some(1)), "{planned:?}");
    assert_eq!(planned.clusters[0].note, None, "no pod has a node: {planned:?}");
    placed(&fleet, &sized("50", "app:2")).await;
    assert_eq!(explain(&fleet, "web").await.clusters[0].note, None);
    placed(&fleet, &sized("1500m", "app:1")).await;
    let planned = plan(&fleet, &sized("1500m", "app:2")).await;
    let note = planned.clusters[0].note.as_deref().unwrap_or_default();
    assert!(note.starts_with("its rolling update waits"), "{planned:?}");
}
