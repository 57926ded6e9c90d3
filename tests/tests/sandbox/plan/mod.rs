//! What `plan` and `explain` are answered: reviews on the sandbox, and that what they say comes true.

mod admission;
mod answers;
mod draw;
mod in_the_way;
mod property;
mod tried;
mod unsatisfied;

use crate::stage::deployments;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use portolan_api::placementreview::{ObjectReview, ReviewTarget, ReviewedKind};
use portolan_api::template::PreservedObject;
use portolan_api::{PlacementReview, PlacementReviewSpec, PlacementReviewStatus};
use portolan_tests::NAMESPACE;
use portolan_tests::simulation::Fleet;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

fn reviews(fleet: &Fleet) -> Api<PlacementReview> {
    Api::namespaced(fleet.hub.client("user"), NAMESPACE)
}

/// Asks the controller, and waits for the answer.
async fn review(fleet: &Fleet, spec: PlacementReviewSpec) -> PlacementReviewStatus {
    let metadata = ObjectMeta { generate_name: Some("review-".to_owned()), ..ObjectMeta::default() };
    let review = PlacementReview { metadata, spec, status: None };
    let name = reviews(fleet).create(&PostParams::default(), &review).await.unwrap().metadata.name.unwrap();
    let mut answer = None;
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let status = reviews(fleet).get(&name).await.unwrap().status;
        answer = status.filter(|status| status.observed_time.is_some());
        if answer.is_some() {
            break;
        }
    }
    reviews(fleet).delete(&name, &Default::default()).await.unwrap();
    answer.expect("an answer within a minute")
}

/// What would come of these manifests.
async fn plan_all(fleet: &Fleet, manifests: &[Value]) -> Vec<ObjectReview> {
    let plan = manifests.iter().cloned().map(PreservedObject).collect();
    let status = review(fleet, PlacementReviewSpec { plan, ..PlacementReviewSpec::default() }).await;
    assert_eq!(status.objects.len(), manifests.len(), "{:?}", status.conditions);
    status.objects
}

/// What would come of a manifest.
pub(crate) async fn plan(fleet: &Fleet, manifest: &Value) -> ObjectReview {
    plan_all(fleet, std::slice::from_ref(manifest)).await.remove(0)
}

/// Why a deployment is where it is.
pub(crate) async fn explain(fleet: &Fleet, name: &str) -> ObjectReview {
    let target = ReviewTarget { kind: ReviewedKind::MultiClusterDeployment, name: name.to_owned() };
    let spec = PlacementReviewSpec { explain: Some(target), ..PlacementReviewSpec::default() };
    review(fleet, spec).await.objects.remove(0)
}

/// What the plan says of each cluster: before and after.
pub(crate) fn steps(plan: &ObjectReview) -> BTreeMap<&str, (i32, i32)> {
    plan.clusters.iter().map(|each| (each.cluster.as_str(), (each.before, each.after))).collect()
}

/// What is there: replicas and template of each copy, by cluster.
async fn there(fleet: &Fleet, name: &str) -> BTreeMap<String, (i32, PodTemplateSpec)> {
    let mut found = BTreeMap::new();
    for (index, member) in fleet.members.iter().enumerate() {
        let copy = deployments(fleet, index).get_opt(name).await.unwrap();
        if let Some(spec) = copy.and_then(|copy| copy.spec) {
            found.insert(member.name().to_owned(), (spec.replicas.unwrap_or(1), spec.template));
        }
    }
    found
}
