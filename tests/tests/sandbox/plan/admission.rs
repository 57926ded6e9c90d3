//! A member whose admission makes pods larger than their template: the plan counts them as they are.

use super::{plan, steps};
use crate::stage::{asking, condition, contend, deployments, fleet_of, pass, status};
use portolan_api::conditions::ConditionType;
use portolan_sandbox::{FaultPlan, MutatingHook};
use portolan_tests::simulation::{Contender, apply};
use portolan_tests::{NAMESPACE, workload};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn what_admission_adds_is_room_in_the_plan_and_no_drift() {
    let fleet = fleet_of(&[("c2", 1, "2")], FaultPlan::none()).await;
    let sidecar = json!({"name": "injected", "image": "proxy:1", "resources": {"requests": {"cpu": "400m"}}});
    fleet.members[0].add_hook(MutatingHook::inject_container("sidecar", sidecar));
    let limit =
        json!({"type": "Container", "defaultRequest": {"memory": "24Mi"}, "default": {"memory": "64Mi"}});
    let range = json!({
        "apiVersion": "v1", "kind": "LimitRange",
        "metadata": {"name": "defaults", "namespace": NAMESPACE}, "spec": {"limits": [limit]},
    });
    apply(&fleet.members[0].client("user"), &range).await;
    let _controller = contend(&fleet, Contender::alone());
    let guarded = |replicas: i32| {
        let mut object = workload("guarded", replicas, json!({"locations": ["c2"], "driftPolicy": "Report"}));
        object["spec"]["template"]["spec"]["containers"] = asking("400m");
        object
    };
    apply(&fleet.hub.client("user"), &guarded(1)).await;
    pass(30).await;
    let planned = plan(&fleet, &guarded(4)).await;
    assert_eq!(steps(&planned)["c2"], (1, 2), "{planned:?}");
    assert_eq!(planned.pending, 2, "{planned:?}");
    apply(&fleet.hub.client("user"), &guarded(4)).await;
    pass(60).await;
    let found = status(&fleet, "guarded").await;
    assert_eq!((found.replicas, found.ready_replicas, found.pending_replicas), (2, 2, 2));
    let (drifted, _, message) = condition(&fleet, "guarded", ConditionType::Drifted).await;
    assert_ne!(drifted, "True", "{message}");
    let copy = deployments(&fleet, 0).get("guarded").await.unwrap();
    assert_eq!(copy.metadata.generation, Some(2), "made and scaled, and nothing set back");
}
