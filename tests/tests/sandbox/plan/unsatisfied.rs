//! Plans of edits that cannot be satisfied: each is told with its reason, as the status tells it afterwards.

use super::{explain, plan, steps};
use crate::stage::{pass, start};
use portolan_api::placementreview::ReviewResult;
use portolan_tests::simulation::apply;
use portolan_tests::{service, workload};
use serde_json::json;

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
async fn nothing_is_planned_of_a_workload_that_is_not_adopted_yet() {
    let (fleet, _controller) = start().await;
    let user = fleet.hub.client("user");
    let mut web = workload("web", 2, json!({"locations": ["c2"]}));
    apply(&user, &web).await;
    pass(30).await;
    web["metadata"]["annotations"] = json!({"portolan.dev/adopt": "unmanaged"});
    apply(&user, &web).await;
    pass(30).await;
    web["spec"]["replicas"] = json!(5);
    let planned = plan(&fleet, &web).await;
    assert_eq!((planned.result, steps(&planned)["c2"]), (ReviewResult::Pending, (2, 2)), "{planned:?}");
    let told = explain(&fleet, "web").await;
    assert_eq!((told.result, told.clusters[0].after), (ReviewResult::Pending, 2), "{told:?}");
    for review in [planned, told] {
        let error = &review.errors[0];
        assert_eq!(error.reason, "NotAdopted", "{review:?}");
        assert!(error.message.contains("marked to take over"), "{error:?}");
        assert!(error.message.contains("was placed by this hub already"), "{error:?}");
    }
}
