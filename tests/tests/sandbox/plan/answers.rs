//! One test for each thing that `plan` and `explain` once got wrong.

use super::{explain, plan, plan_all, review, reviews, steps, there};
use crate::stage::{asking, deployments, pass, start, status};
use kube::api::{ObjectMeta, PostParams};
use portolan_api::placementreview::{ReviewResult, ReviewTarget};
use portolan_api::{PlacementReview, PlacementReviewSpec};
use portolan_sandbox::{HostileAnswer, HostileRule, RequestFilter};
use portolan_tests::simulation::{CONTROLLER, Fleet, apply};
use portolan_tests::{NAMESPACE, service, workload};
use serde_json::{Value, json};
use std::collections::BTreeMap;

async fn placed(fleet: &Fleet, object: &Value) {
    apply(&fleet.hub.client("user"), object).await;
    pass(30).await;
}

#[tokio::test(start_paused = true)]
async fn a_move_is_planned_as_it_happens() {
    let (fleet, _controller) = start().await;
    placed(&fleet, &workload("web", 2, json!({"locations": ["c2"]}))).await;
    let moved = workload("web", 2, json!({"locations": ["c3"]}));
    let planned = plan(&fleet, &moved).await;
    assert_eq!(steps(&planned), BTreeMap::from([("c2", (2, 0)), ("c3", (0, 2))]), "{planned:?}");
    assert_eq!((planned.result, planned.removed_running_replicas), (ReviewResult::Changes, 0));
    assert_eq!(there(&fleet, "web").await.len(), 1, "nothing was done");
    placed(&fleet, &moved).await;
    assert_eq!(there(&fleet, "web").await.keys().collect::<Vec<_>>(), ["c3"]);
    assert_eq!(plan(&fleet, &moved).await.result, ReviewResult::Unchanged);
}

#[tokio::test(start_paused = true)]
async fn a_field_that_is_not_given_any_more_is_gone() {
    let (fleet, _controller) = start().await;
    let policy = json!({"placementPolicy": "worst-fit", "numberOfLocations": 2});
    placed(&fleet, &workload("web", 2, policy)).await;
    assert_eq!(status(&fleet, "web").await.ready_replicas, 4);
    let without = workload("web", 2, json!({"placementPolicy": "worst-fit"}));
    let planned = plan(&fleet, &without).await;
    let left: i32 = planned.clusters.iter().map(|each| each.after).sum();
    assert_eq!((left, planned.removed_running_replicas, planned.result), (2, 2, ReviewResult::Removes));
}

#[tokio::test(start_paused = true)]
async fn what_kubectl_applied_is_merged_and_what_others_set_stays() {
    let (fleet, _controller) = start().await;
    let given = workload("web", 2, json!({"placementPolicy": "worst-fit", "numberOfLocations": 2}));
    let mut object = given.clone();
    let last = json!({"kubectl.kubernetes.io/last-applied-configuration": given.to_string()});
    object["metadata"]["annotations"] = last;
    placed(&fleet, &object).await;
    let mut less = given;
    less["spec"].as_object_mut().unwrap().remove("numberOfLocations");
    less["spec"].as_object_mut().unwrap().remove("replicas");
    let planned = plan(&fleet, &less).await;
    let left: i32 = planned.clusters.iter().map(|each| each.after).sum();
    assert_eq!(left, 1, "one location of one replica, the default: {planned:?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_image_is_a_change_and_told_with_its_pods() {
    let (fleet, _controller) = start().await;
    let locations = json!({"locations": ["c2", "c3"]});
    placed(&fleet, &workload("web", 2, locations.clone())).await;
    let mut changed = workload("web", 2, locations);
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = json!("portolan.test/busybox:2");
    let planned = plan(&fleet, &changed).await;
    assert_eq!(planned.result, ReviewResult::Changes);
    let rollout = planned.rollout.unwrap();
    assert_eq!((rollout.pods, rollout.images[0].to.as_str()), (4, "portolan.test/busybox:2"));
    assert!(!rollout.recreate);
    // What Kubernetes takes for the same is no change.
    let mut same = workload("web", 2, json!({"locations": ["c2", "c3"]}));
    same["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
    let planned = plan(&fleet, &same).await;
    assert!(planned.rollout.is_none(), "{planned:?}");
}

#[tokio::test(start_paused = true)]
async fn pods_that_all_end_before_new_ones_start_are_told() {
    let (fleet, _controller) = start().await;
    let recreated = |image: &str| {
        let mut object = workload("web", 2, json!({"locations": ["c2"], "strategy": {"type": "Recreate"}}));
        object["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        object
    };
    placed(&fleet, &workload("web", 2, json!({"locations": ["c2"]}))).await;
    let changed = plan(&fleet, &recreated("app:1")).await.rollout.unwrap();
    placed(&fleet, &recreated("app:1")).await;
    let again = plan(&fleet, &recreated("app:2")).await.rollout.unwrap();
    for rollout in [changed, again] {
        assert_eq!((rollout.pods, rollout.recreate), (2, true), "{rollout:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_template_is_told_and_changes_nothing() {
    let (fleet, _controller) = start().await;
    let locations = json!({"locations": ["c2"]});
    placed(&fleet, &workload("web", 2, locations.clone())).await;
    let mut wrong = workload("web", 3, locations);
    wrong["spec"]["template"]["spec"]["containers"][0]["imagee"] = json!("app");
    let planned = plan(&fleet, &wrong).await;
    assert_eq!((planned.result, steps(&planned)["c2"]), (ReviewResult::Invalid, (2, 2)), "{planned:?}");
    let error = &planned.errors[0];
    assert_eq!((error.cluster.as_deref(), error.reason.as_str()), (Some("c2"), "InvalidTemplate"));
    assert!(error.message.contains("imagee"), "{}", error.message);
    placed(&fleet, &wrong).await;
    assert_eq!(there(&fleet, "web").await["c2"].0, 2);
}

#[tokio::test(start_paused = true)]
async fn what_the_hub_would_refuse_is_told_with_what_was_meant() {
    let (fleet, _controller) = start().await;
    let of = async |more: Value| {
        let planned = plan(&fleet, &workload("web", 2, more)).await;
        assert_eq!(planned.result, ReviewResult::Invalid);
        planned.errors[0].message.clone()
    };
    assert_eq!(of(json!({"location": ["c2"]})).await, "unknown field spec.location: did you mean locations?");
    let rule = of(json!({"locations": ["c2"], "placementPolicy": "worst-fit"})).await;
    assert!(rule.contains("locations"), "{rule}");
    let mut elsewhere = workload("web", 2, json!({"locations": ["c2"]}));
    elsewhere["metadata"]["namespace"] = json!("kube-system");
    assert_eq!(plan(&fleet, &elsewhere).await.errors[0].reason, "NamespaceMismatch");
}

#[tokio::test(start_paused = true)]
async fn of_other_namespaces_only_a_number_is_told() {
    let (fleet, _controller) = start().await;
    let mut secret = workload("secret-project", 3, json!({"locations": ["c2"]}));
    secret["metadata"]["namespace"] = json!("hidden");
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "hidden", "labels": {"portolan.dev/placement": "allowed"}},
    });
    apply(&fleet.hub.client("user"), &namespace).await;
    apply(&fleet.members[0].client("user"), &namespace).await;
    apply(&fleet.hub.client("user"), &secret).await;
    placed(&fleet, &workload("near", 2, json!({"locations": ["c2"]}))).await;
    placed(&fleet, &workload("web", 1, json!({"locations": ["c2"]}))).await;
    let told = explain(&fleet, "web").await;
    let there = &told.clusters[0];
    assert_eq!((there.reserved[0].workload.as_str(), there.reserved[0].replicas), ("mcd/near", 2));
    assert_eq!(there.reserved_by_other_namespaces, Some(3));
    let text = serde_json::to_string(&told).unwrap();
    assert!(!text.contains("hidden") && !text.contains("secret-project"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_a_member_is_named() {
    let (fleet, _controller) = start().await;
    let taken = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": {"app": "other"}},
            "template": {"metadata": {"labels": {"app": "other"}}, "spec": {"containers": asking("10m")}},
        },
    });
    apply(&fleet.members[0].client("user"), &taken).await;
    let web = workload("web", 2, json!({"locations": ["c2"]}));
    let planned = plan(&fleet, &web).await;
    let refused = planned.clusters[0].refused.as_ref().unwrap();
    assert_eq!((refused.reason.as_str(), planned.result), ("NameTaken", ReviewResult::Pending));
    assert_eq!(planned.clusters[0].after, 0, "{planned:?}");
    placed(&fleet, &web).await;
    let told = explain(&fleet, "web").await;
    let refused = told.clusters[0].refused.as_ref().unwrap();
    assert_eq!((refused.reason.as_str(), told.result), ("NameTaken", ReviewResult::Pending), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn manifests_are_planned_one_after_the_other_and_leave_no_trace() {
    let (fleet, _controller) = start().await;
    let sized = |name: &str| {
        let mut object = workload(name, 1, json!({"locations": ["c2"]}));
        object["spec"]["template"]["spec"]["containers"] = asking("1500m");
        object
    };
    let web = service("web", json!({"app": "one"}));
    for _ in 0..2 {
        let planned = plan_all(&fleet, &[web.clone(), sized("one"), sized("two")]).await;
        let told: Vec<_> =
            planned.iter().map(|each| (each.name.as_str(), each.pending, each.result)).collect();
        let expected = [
            ("one", 0, ReviewResult::Changes),
            ("two", 1, ReviewResult::Pending),
            ("web", 0, ReviewResult::Changes),
        ];
        assert_eq!(told, expected, "the second time as the first");
        assert_eq!(steps(&planned[2]), BTreeMap::from([("c2", (0, 1))]));
    }
    placed(&fleet, &sized("two")).await;
    assert_eq!(status(&fleet, "two").await.ready_replicas, 1, "what is planned takes no room");
}

#[tokio::test(start_paused = true)]
async fn a_review_is_deleted_some_minutes_after_its_answer() {
    let (fleet, _controller) = start().await;
    pass(20).await;
    let explain = Some(ReviewTarget { name: "nothing".into(), ..ReviewTarget::default() });
    let spec = PlacementReviewSpec { explain, ..PlacementReviewSpec::default() };
    let metadata = ObjectMeta { name: Some("kept".into()), ..ObjectMeta::default() };
    let kept = PlacementReview { metadata, spec: spec.clone(), status: None };
    reviews(&fleet).create(&PostParams::default(), &kept).await.unwrap();
    pass(60).await;
    let answer = reviews(&fleet).get("kept").await.unwrap().status.unwrap();
    assert_eq!(answer.objects[0].errors[0].reason, "NotFound");
    pass(300).await;
    assert!(reviews(&fleet).get_opt("kept").await.unwrap().is_none());
    assert_eq!(review(&fleet, spec).await.result, Some(ReviewResult::Invalid));
}

#[tokio::test(start_paused = true)]
async fn running_replicas_that_would_go_are_counted() {
    let (fleet, _controller) = start().await;
    placed(&fleet, &workload("web", 2, json!({"locations": ["c2"]}))).await;
    let planned = plan(&fleet, &workload("web", 0, json!({"locations": ["c2"]}))).await;
    assert_eq!((planned.removed_running_replicas, planned.result), (2, ReviewResult::Removes));
    assert!(deployments(&fleet, 0).get_opt("web").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_member_that_never_answers_a_trial_holds_a_review_up_for_a_bounded_time() {
    let (fleet, _controller) = start().await;
    pass(20).await;
    let tries = RequestFilter::any().party(CONTROLLER).verb("patch").resource("deployments.apps");
    fleet.world.hostile("c2", vec![HostileRule::new(tries, HostileAnswer::Hang)]);
    let names: Vec<String> = (0..8).map(|number| format!("web{number}")).collect();
    let manifests: Vec<Value> =
        names.iter().map(|name| workload(name, 1, json!({"locations": ["c2"]}))).collect();
    let began = tokio::time::Instant::now();
    let planned = plan_all(&fleet, &manifests).await;
    let seconds = began.elapsed().as_secs();
    assert!(seconds <= 20, "answered after {seconds} s");
    for each in &planned {
        let note = each.clusters[0].note.as_deref().unwrap_or_default();
        assert!(note.contains("it was not asked"), "{note:?}");
    }
}
