//! Plans where something is in the way or under way: a foreign object, copies of a former object, a move.

use super::{plan, steps, there};
use crate::stage::{asking, condition, deployments, pass, start, workloads};
use kube::api::{DeleteParams, PropagationPolicy};
use portolan_api::conditions::ConditionType;
use portolan_api::placementreview::ReviewResult;
use portolan_sandbox::{HostileAnswer, HostileRule, RequestFilter};
use portolan_tests::simulation::{CONTROLLER, Fleet, apply};
use portolan_tests::{NAMESPACE, workload};
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
