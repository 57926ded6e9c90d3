//! Somebody changes what was placed in a member.

use crate::stage::{condition, deployments, events, pass, patch, replicas, start, status};
use kube::api::{Patch, PatchParams};
use portolan_api::conditions::ConditionType;
use portolan_tests::simulation::{Fleet, apply};
use portolan_tests::workload;
use serde_json::{Value, json};

async fn meddle(fleet: &Fleet, spec: Value) {
    let patch = Patch::Merge(json!({ "spec": spec }));
    deployments(fleet, 0).patch("web", &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn reported_and_left_alone() {
    let (fleet, _controller) = start().await;
    let wish = json!({"locations": ["c2"], "driftPolicy": "Report"});
    apply(&fleet.hub.client("user"), &workload("web", 2, wish)).await;
    pass(20).await;
    assert_eq!(condition(&fleet, "web", ConditionType::Drifted).await.0, "False");
    meddle(&fleet, json!({"replicas": 1, "minReadySeconds": 1})).await;
    pass(20).await;
    let (drifted, reason, message) = condition(&fleet, "web", ConditionType::Drifted).await;
    assert_eq!((drifted.as_str(), reason.as_str()), ("True", "Drifted"));
    assert!(message.starts_with("c2: spec.replicas is 1, placed was 2"), "{message}");
    assert!(!message.contains("minReadySeconds"), "what was not placed is theirs: {message}");
    assert_eq!(replicas(&fleet, 0, "web").await, Some(1), "it is not corrected");
    assert_eq!(status(&fleet, "web").await.placements[0].reason.as_deref(), Some("Drifted"));
    assert!(events(&fleet, "web").await.contains(&"Drifted".to_owned()));
    // Undone by hand, it is told no more.
    meddle(&fleet, json!({"replicas": 2})).await;
    pass(20).await;
    assert_eq!(condition(&fleet, "web", ConditionType::Drifted).await.0, "False");
    assert_eq!(condition(&fleet, "web", ConditionType::Ready).await.0, "True");
    // And with the other policy, the next change is set back.
    patch(&fleet, "web", json!({"driftPolicy": "Correct"})).await;
    pass(5).await;
    meddle(&fleet, json!({"replicas": 1})).await;
    pass(20).await;
    assert_eq!(replicas(&fleet, 0, "web").await, Some(2));
}

#[tokio::test(start_paused = true)]
async fn corrected_and_told() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &workload("web", 2, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    let container = json!([{"name": "main", "image": "evil:1"}]);
    let patch = Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": container}}}}));
    deployments(&fleet, 0).patch("web", &PatchParams::default(), &patch).await.unwrap();
    pass(20).await;
    let copy = deployments(&fleet, 0).get("web").await.unwrap();
    let image = copy.spec.unwrap().template.spec.unwrap().containers[0].image.clone();
    assert_eq!(image.as_deref(), Some("portolan.test/busybox:1"));
    assert!(events(&fleet, "web").await.contains(&"DriftCorrected".to_owned()));
    let status = status(&fleet, "web").await;
    assert_eq!(status.placements[0].images, ["portolan.test/busybox:1"]);
    assert_eq!(status.images, ["portolan.test/busybox:1"]);
}
