//! A template is tried in a member before anything of it is placed.

use crate::jobs;
use crate::stage::{condition, deployments, pass, patch, replicas, start, status};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::conditions::ConditionType;
use portolan_tests::NAMESPACE;
use portolan_tests::simulation::apply;
use portolan_tests::{job, workload};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn what_no_member_would_take_is_not_placed_and_what_runs_stays() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    let mut odd = workload("odd", 2, json!({"locations": ["c2", "c3"]}));
    odd["spec"]["template"]["spec"]["containers"][0]["name"] = json!("Not A Name");
    apply(&user, &odd).await;
    pass(20).await;
    let (placed, reason, message) = condition(&fleet, "odd", ConditionType::Placed).await;
    assert_eq!((placed.as_str(), reason.as_str()), ("False", "InvalidTemplate"));
    assert!(message.starts_with("c2 refuses it: ") && message.contains("containers[0].name"), "{message}");
    assert!(!message.contains("odd-"), "the name of the trial is nobody's business: {message}");
    assert!(status(&fleet, "odd").await.placements.is_empty(), "no room is reserved for it");
    for member in 0..2 {
        assert!(deployments(&fleet, member).list(&Default::default()).await.unwrap().items.is_empty());
    }

    apply(&user, &workload("web", 2, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("2/2"));
    patch(&fleet, "web", json!({"replicas": 3, "template": {"spec": {"fieldOfTomorrow": true}}})).await;
    pass(20).await;
    let (_, reason, message) = condition(&fleet, "web", ConditionType::Ready).await;
    assert_eq!(reason, "InvalidTemplate");
    assert!(message.contains("fieldOfTomorrow"), "{message}");
    assert_eq!(replicas(&fleet, 0, "web").await, Some(2), "what runs stays");
    patch(&fleet, "web", json!({"template": {"spec": {"fieldOfTomorrow": null}}})).await;
    pass(20).await;
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("3/3"));
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_no_container_can_have_is_told_as_such_and_not_as_lack_of_room() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    let mut web = workload("web", 2, json!({"locations": ["c2"]}));
    let mut sum = job("sum", 1, 1, json!({"locations": ["c2"]}));
    for object in [&mut web, &mut sum] {
        object["spec"]["template"]["spec"]["containers"][0]["resources"] =
            json!({"requests": {"memmory": "1Gi"}});
        apply(&user, object).await;
    }
    pass(20).await;
    let of_job = jobs::condition(&jobs::status(&fleet, "sum").await, "Placed");
    for (placed, reason, message) in [condition(&fleet, "web", ConditionType::Placed).await, of_job] {
        assert_eq!((placed.as_str(), reason.as_str()), ("False", "InvalidTemplate"), "{message}");
        let field = "spec.template.spec.containers[0].resources.requests: ";
        assert!(message.contains(field) && message.contains("\"memmory\""), "{message}");
        assert!(message.contains("example.com/gpu"), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_member_is_not_asked_again_and_again_about_a_template_that_it_refuses() {
    let (fleet, _controller) = start().await;
    apply(&fleet.hub.client("user"), &workload("web", 1, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    let namespaces: Api<Namespace> = Api::all(fleet.members[0].client("user"));
    let closed = Patch::Merge(json!({"metadata": {"labels": {"portolan.dev/placement": null}}}));
    namespaces.patch(NAMESPACE, &PatchParams::default(), &closed).await.unwrap();
    pass(20).await;
    let tried = || fleet.world.log().lines().iter().filter(|line| line.contains("dryRun=All")).count();
    let before = tried();
    patch(&fleet, "web", json!({"template": {"spec": {"fieldOfTomorrow": true}}})).await;
    pass(20).await;
    assert_eq!(condition(&fleet, "web", ConditionType::Ready).await.1, "InvalidTemplate");
    assert_eq!(tried() - before, 1);
    assert_eq!(replicas(&fleet, 0, "web").await, Some(1), "what runs stays");
}
