//! What members would refuse is told for every kind, and nothing of it is planned.

use super::{plan, plan_all, steps};
use crate::stage::{asking, pass, start, status};
use kube::Api;
use portolan_api::MultiClusterService;
use portolan_api::placementreview::{ObjectReview, ReviewResult};
use portolan_sandbox::{HostileAnswer, HostileRule, RequestFilter};
use portolan_tests::simulation::{CONTROLLER, Fleet, apply};
use portolan_tests::{NAMESPACE, job, service, workload};
use serde_json::{Value, json};
use std::collections::BTreeMap;

async fn placed(fleet: &Fleet, object: &Value) {
    apply(&fleet.hub.client("user"), object).await;
    pass(30).await;
}

/// A change of a manifest.
type Edit = fn(&mut Value);

fn is_invalid(planned: &ObjectReview, reason: &str) -> bool {
    let told = |error: &portolan_api::placementreview::ReviewError| {
        error.cluster.as_deref() == Some("c2") && error.reason == reason
    };
    planned.result == ReviewResult::Invalid && planned.errors.iter().any(told)
}

#[tokio::test(start_paused = true)]
async fn the_template_of_a_job_is_tried_in_the_members() {
    let (fleet, _controller) = start().await;
    pass(20).await;
    let sum = || job("sum", 4, 2, json!({"locations": ["c2"]}));
    assert_eq!(plan(&fleet, &sum()).await.result, ReviewResult::Changes);
    let edits: [Edit; 4] = [
        |object| object["spec"]["template"]["spec"]["restartPolicy"] = json!("Always"),
        |object| _ = object["spec"]["template"]["spec"].as_object_mut().unwrap().remove("restartPolicy"),
        |object| object["spec"]["template"]["spec"]["containers"][0]["image"] = json!(""),
        |object| object["spec"]["template"]["spec"]["containers"][0]["imagee"] = json!("app"),
    ];
    for edit in edits {
        for suspended in [false, true] {
            let mut wrong = sum();
            edit(&mut wrong);
            wrong["spec"]["suspend"] = json!(suspended);
            let planned = plan(&fleet, &wrong).await;
            assert!(is_invalid(&planned, "InvalidTemplate"), "{wrong} {planned:?}");
            assert_eq!((planned.clusters.len(), planned.pending), (0, 0), "{planned:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_name_is_taken_goes_elsewhere_in_the_plan_too() {
    let (fleet, _controller) = start().await;
    let taken = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sum", "namespace": NAMESPACE},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": asking("10m")}}},
    });
    apply(&fleet.members[0].client("user"), &taken).await;
    pass(20).await;
    let only = plan(&fleet, &job("sum", 4, 2, json!({"locations": ["c2"]}))).await;
    let refused = only.clusters[0].refused.as_ref().unwrap();
    assert_eq!((only.result, refused.reason.as_str()), (ReviewResult::Pending, "NameTaken"), "{only:?}");
    assert_eq!((steps(&only)["c2"], only.pending), ((0, 0), 4), "{only:?}");
    let more = json!({"locations": ["c2"], "enableSubstitution": true});
    let elsewhere = plan(&fleet, &job("sum", 4, 2, more)).await;
    assert_eq!(steps(&elsewhere), BTreeMap::from([("c2", (0, 0)), ("c3", (0, 4))]), "{elsewhere:?}");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_members_refuse_is_told() {
    let (fleet, _controller) = start().await;
    placed(&fleet, &workload("web", 1, json!({"locations": ["c2"]}))).await;
    let web = || service("web", json!({"app": "web"}));
    placed(&fleet, &web()).await;
    let mut ports = web();
    ports["spec"]["type"] = json!("NodePort");
    ports["spec"]["ports"][0]["nodePort"] = json!(80);
    let planned = plan(&fleet, &ports).await;
    assert!(is_invalid(&planned, "Invalid"), "{planned:?}");
    assert!(planned.errors[0].message.contains("30000-32767"), "{planned:?}");
    assert_eq!(steps(&planned)["c2"], (1, 1));
    let changes = RequestFilter::any().party(CONTROLLER).verb("patch").resource("services");
    let denied = HostileAnswer::refusal(403, "services is forbidden");
    fleet.world.hostile("c2", vec![HostileRule::new(changes, denied)]);
    let mut labelled = web();
    labelled["metadata"]["labels"] = json!({"team": "b"});
    let planned = plan(&fleet, &labelled).await;
    let refused = planned.clusters[0].refused.as_ref().unwrap();
    assert_eq!(
        (planned.result, refused.reason.as_str()),
        (ReviewResult::Pending, "Forbidden"),
        "{planned:?}"
    );
    assert_eq!(plan(&fleet, &web()).await.result, ReviewResult::Unchanged);
}

#[tokio::test(start_paused = true)]
async fn a_selector_that_selects_nothing_any_more_is_told() {
    let (fleet, _controller) = start().await;
    placed(&fleet, &workload("web", 1, json!({"locations": ["c2"]}))).await;
    placed(&fleet, &service("web", json!({"app": "web"}))).await;
    let wrong = service("web", json!({"app": "wbe"}));
    for _ in 0..2 {
        let planned = plan(&fleet, &wrong).await;
        assert_eq!((planned.result, steps(&planned)["c2"]), (ReviewResult::Pending, (1, 1)), "{planned:?}");
        assert!(!planned.notes.iter().any(|note| note.starts_with("It follows web")), "{planned:?}");
        assert!(planned.notes.iter().any(|note| note.contains("selects no pods any more")), "{planned:?}");
        placed(&fleet, &wrong).await;
    }
    let api: Api<MultiClusterService> = Api::namespaced(fleet.hub.client("user"), NAMESPACE);
    assert_eq!(api.get("web").await.unwrap().status.unwrap().clusters.len(), 1, "it stays");
    // Together with pods that it selects, it is well.
    let mut pods = workload("web", 1, json!({"locations": ["c2"]}));
    pods["spec"]["template"]["metadata"]["labels"]["tier"] = json!("front");
    let both = plan_all(&fleet, &[pods, service("web", json!({"tier": "front"}))]).await;
    assert_eq!(both[1].result, ReviewResult::Unchanged, "{both:?}");
}

#[tokio::test(start_paused = true)]
async fn the_template_of_a_workload_that_is_paused_is_tried_and_the_pause_is_told() {
    let (fleet, _controller) = start().await;
    let paused = |replicas: i32| workload("web", replicas, json!({"locations": ["c2"], "paused": true}));
    let wrong = |mut object: Value| {
        object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("");
        object
    };
    pass(20).await;
    assert_eq!(plan(&fleet, &wrong(paused(1))).await.result, ReviewResult::Invalid, "a new one");
    placed(&fleet, &workload("web", 1, json!({"locations": ["c2"]}))).await;
    assert!(is_invalid(&plan(&fleet, &wrong(paused(1))).await, "InvalidTemplate"));
    let mut more = paused(5);
    more["spec"]["template"]["spec"]["containers"][0]["image"] = json!("portolan.test/busybox:2");
    let planned = plan(&fleet, &more).await;
    assert_eq!((planned.result, planned.pending), (ReviewResult::Pending, 4), "{planned:?}");
    assert_eq!((steps(&planned)["c2"], planned.rollout.is_none()), ((1, 1), true), "{planned:?}");
    assert!(planned.notes[0].starts_with("It is paused"), "{planned:?}");
    let text = serde_json::to_string(&planned).unwrap();
    assert!(!text.contains("peer"), "{text}");
    placed(&fleet, &more).await;
    assert_eq!(status(&fleet, "web").await.pending_replicas, 4);
}
