//! Requests that are under way while decisions change.

use crate::stage::{pass, patch, ready, replicas, start, status};
use portolan_sandbox::{FaultAnswer, PartialFault, RequestFilter};
use portolan_tests::simulation::apply;
use portolan_tests::workload;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_copy_whose_deletion_is_under_way_is_not_counted_on_when_the_location_is_set_back() {
    for wait in 0..8 {
        let (fleet, _controller) = start().await;
        apply(&fleet.hub.client("user"), &workload("web", 2, json!({"locations": ["c2"]}))).await;
        pass(20).await;
        assert_eq!(ready(&fleet, "web").await, 2);
        let slow = RequestFilter::any().cluster("c2").verb("delete").resource("deployments.apps");
        fleet.world.add_fault(PartialFault::new("slow", slow, FaultAnswer::Slow(6)));
        patch(&fleet, "web", json!({"locations": ["c3"]})).await;
        while replicas(&fleet, 1, "web").await.is_none() || ready(&fleet, "web").await < 4 {
            pass(1).await;
        }
        pass(wait).await;
        patch(&fleet, "web", json!({"locations": ["c2"]})).await;
        for second in 0..60 {
            pass(1).await;
            let ready = ready(&fleet, "web").await;
            assert!(
                ready >= 2,
                "{ready} of 2 are ready {second} s after the change, {wait} s after the move"
            );
        }
        assert_eq!(status(&fleet, "web").await.locations_summary.as_deref(), Some("c2=2"));
    }
}
