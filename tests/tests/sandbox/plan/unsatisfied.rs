//! Plans of edits that cannot be satisfied: each is told with its reason, as the status tells it afterwards.

use super::{explain, plan, steps, there};
use crate::stage::{asking, condition, pass, start};
use portolan_api::conditions::ConditionType;
use portolan_api::placementreview::{ObjectReview, ReviewResult};
use portolan_sandbox::{HostileAnswer, HostileRule, RequestFilter};
use portolan_tests::simulation::{CONTROLLER, apply};
use portolan_tests::{job, service, workload};
use serde_json::{Value, json};

fn refusal<'a>(planned: &'a ObjectReview, cluster: &str) -> (&'a str, &'a str) {
    let found = planned.refusals.iter().find(|each| each.cluster == cluster);
    found.map_or(("", ""), |each| (each.reason.as_str(), each.message.as_str()))
}

/// A change of a workload.
type Edit<'a> = &'a dyn Fn(&mut Value);

#[tokio::test(start_paused = true)]
async fn replicas_that_only_stay_are_told_with_the_reason_of_each_cluster() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    let web = || workload("web", 2, json!({"locations": ["c2"]}));
    apply(&user, &web()).await;
    pass(30).await;
    let huge = |object: &mut Value| object["spec"]["template"]["spec"]["containers"] = asking("50");
    let nowhere =
        |object: &mut Value| object["spec"]["template"]["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    let unselected =
        |object: &mut Value| object["spec"]["clusterSelector"] = json!({"matchLabels": {"regoin": "eu"}});
    let edits: [(Edit<'_>, &str, &str); 3] = [
        (&huge, "NoRoom", "a replica needs cpu 50 and the freest of"),
        (&nowhere, "NoRoom", "node"),
        (&unselected, "NotSelected", "its labels do not match spec.clusterSelector"),
    ];
    for (edit, reason, message) in edits {
        let mut edited = web();
        edit(&mut edited);
        let planned = plan(&fleet, &edited).await;
        assert_eq!((planned.result, steps(&planned)["c2"]), (ReviewResult::Pending, (2, 2)), "{planned:?}");
        let (found, why) = refusal(&planned, "c2");
        assert!(found == reason && why.contains(message), "{planned:?}");
        assert!(planned.notes.iter().any(|note| note.starts_with("2 of 2 replicas stay")), "{planned:?}");
        assert_eq!(planned.clusters[0].note, None, "no rolling update waits: the former template stays");
        assert!(planned.rollout.is_none(), "{planned:?}");
        apply(&user, &edited).await;
        pass(30).await;
        let (ready, because, _) = condition(&fleet, "web", ConditionType::Placed).await;
        assert_eq!((ready.as_str(), because.as_str()), ("False", "ReplicasKept"));
        let told = explain(&fleet, "web").await;
        assert_eq!((told.result, told.clusters[0].note.is_some()), (ReviewResult::Pending, true), "{told:?}");
        assert!(!told.clusters[0].note.as_ref().unwrap().contains("maxUnavailable"), "{told:?}");
        apply(&user, &web()).await;
        pass(30).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_no_member_has_is_named() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    let total = |locations: Value| json!({"locations": locations, "replicasMode": "Total"});
    apply(&user, &workload("web", 2, total(json!(["c2"])))).await;
    apply(&user, &job("sum", 4, 2, json!({"locations": ["c2"]}))).await;
    pass(5).await;
    let mut far = workload("web", 2, total(json!(["c2"])));
    far["spec"]["maxLatency"] = json!({"from": "nowhere", "rtt": "20ms"});
    let manifests = [
        (workload("web", 2, total(json!(["c22"]))), "c22", "spec.locations"),
        (workload("web", 2, total(json!(["c2", "c33"]))), "c33", "spec.locations"),
        (job("sum", 4, 2, json!({"locations": ["c33"]})), "c33", "spec.locations"),
        (far, "nowhere", "spec.maxLatency.from"),
    ];
    for (manifest, name, field) in manifests {
        let planned = plan(&fleet, &manifest).await;
        assert_eq!(planned.result, ReviewResult::Pending, "{planned:?}");
        let (reason, message) = refusal(&planned, name);
        assert_eq!(reason, "ClusterNotFound", "{planned:?}");
        assert!(message.starts_with(&format!("{name} is no member")) && message.contains(field), "{message}");
        let wrong = planned.clusters.iter().find(|each| each.verdict.contains("it is one of the locations"));
        let named = manifest["spec"]["locations"].as_array().unwrap();
        assert!(wrong.is_none_or(|each| named.contains(&json!(each.cluster))), "{wrong:?}");
    }
    apply(&user, &workload("web", 2, total(json!(["c2", "c33"])))).await;
    pass(20).await;
    let told = explain(&fleet, "web").await;
    let unknown = told.clusters.iter().find(|each| each.cluster == "c33").unwrap();
    assert_eq!((told.result, unknown.after), (ReviewResult::Pending, 0), "{told:?}");
    assert!(unknown.verdict.contains("c33 is no member"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn more_locations_than_the_fleet_has_clusters_are_told() {
    let (fleet, _controller) = start().await;
    pass(20).await;
    let many = json!({"placementPolicy": "worst-fit", "numberOfLocations": 9});
    let of_job = json!({"placementPolicy": "worst-fit", "numberOfLocations": 9});
    for manifest in [workload("web", 2, many), job("sum", 2, 2, of_job)] {
        let planned = plan(&fleet, &manifest).await;
        assert_eq!(planned.result, ReviewResult::Pending, "{planned:?}");
        let told =
            planned.notes.iter().any(|note| note.starts_with("9 locations are asked for, and the fleet has"));
        assert!(planned.pending > 0 && told, "{planned:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_would_have_to_be_another_one_is_told() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    let mut headless = service("web", json!({"app": "web"}));
    headless["spec"]["clusterIP"] = json!("None");
    apply(&user, &workload("web", 1, json!({"locations": ["c2"]}))).await;
    apply(&user, &headless).await;
    pass(30).await;
    assert_eq!(plan(&fleet, &headless).await.result, ReviewResult::Unchanged);
    let planned = plan(&fleet, &service("web", json!({"app": "web"}))).await;
    let refused = planned.clusters[0].refused.as_ref().unwrap();
    assert_eq!(
        (planned.result, refused.reason.as_str()),
        (ReviewResult::Pending, "Immutable"),
        "{planned:?}"
    );
    assert!(refused.message.starts_with("spec.clusterIP of a Service cannot be changed"), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_missing_config_map_does_not_hold_the_workload_up() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    let needs = |replicas: i32, image: &str| {
        let mut object = workload("web", replicas, json!({"locations": ["c2"]}));
        let container = &mut object["spec"]["template"]["spec"]["containers"][0];
        container["image"] = json!(image);
        container["envFrom"] = json!([{"configMapRef": {"name": "nocm"}}]);
        object
    };
    apply(&user, &workload("web", 2, json!({"locations": ["c2"]}))).await;
    pass(30).await;
    let changed = needs(3, "app:2");
    let planned = plan(&fleet, &changed).await;
    assert_eq!((planned.result, steps(&planned)["c2"]), (ReviewResult::Pending, (2, 3)), "{planned:?}");
    let error = &planned.errors[0];
    assert_eq!(error.reason, "DependencyNotFound");
    assert!(error.message.contains("new pods wait") && !error.message.contains("applied"), "{error:?}");
    apply(&user, &changed).await;
    pass(30).await;
    let (replicas, template) = there(&fleet, "web").await.remove("c2").unwrap();
    let image = template.spec.unwrap().containers[0].image.clone();
    assert_eq!((replicas, image.as_deref()), (3, Some("app:2")), "it is applied");
    let told = explain(&fleet, "web").await;
    assert!(told.errors[0].message.contains("new pods wait"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn what_runs_in_a_member_that_refuses_stays_and_is_counted() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    let web = |replicas: i32| workload("web", replicas, json!({"locations": ["c2"]}));
    apply(&user, &web(3)).await;
    pass(30).await;
    let changes = RequestFilter::any().party(CONTROLLER).verb("patch").resource("deployments.apps");
    let denied = HostileAnswer::refusal(403, "deployments is forbidden");
    fleet.world.hostile("c2", vec![HostileRule::new(changes, denied)]);
    let planned = plan(&fleet, &web(4)).await;
    assert_eq!((planned.result, steps(&planned)["c2"]), (ReviewResult::Pending, (3, 3)), "{planned:?}");
    assert!(planned.clusters[0].verdict.starts_with("3 replicas stay as they are"), "{planned:?}");
    // Then 4 are recorded, and 3 run.
    apply(&user, &web(4)).await;
    pass(30).await;
    let planned = plan(&fleet, &web(5)).await;
    assert_eq!((planned.result, steps(&planned)["c2"]), (ReviewResult::Pending, (3, 3)), "{planned:?}");
    let new = plan(&fleet, &workload("new", 2, json!({"locations": ["c2"]}))).await;
    assert_eq!((new.result, steps(&new)["c2"]), (ReviewResult::Pending, (0, 0)), "{new:?}");
    assert!(new.clusters[0].verdict.starts_with("nothing: it refuses"), "{new:?}");
    let told = explain(&fleet, "web").await;
    assert!(told.clusters[0].verdict.contains("and 3 run there"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_planned_of_a_workload_that_is_not_adopted_yet() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    let mut web = workload("web", 2, json!({"locations": ["c2"]}));
    web["metadata"]["annotations"] = json!({"portolan.dev/adopt": "unmanaged"});
    apply(&user, &web).await;
    pass(30).await;
    web["spec"]["replicas"] = json!(5);
    let planned = plan(&fleet, &web).await;
    assert_eq!(planned.result, ReviewResult::Pending, "{planned:?}");
    let told = explain(&fleet, "web").await;
    assert_eq!(told.result, ReviewResult::Pending, "{told:?}");
    for review in [planned, told] {
        let error = &review.errors[0];
        assert_eq!(error.reason, "NotAdopted", "{review:?}");
        assert!(error.message.contains("marked to take over"), "{error:?}");
        assert!(error.message.contains("no member has a Deployment shop/web"), "{error:?}");
    }
}
