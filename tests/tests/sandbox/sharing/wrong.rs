//! What cannot be enforced, and leaders that are late.

use super::*;
use crate::stage::pass;
use portolan_core::capacity::CPU;
use portolan_sandbox::{FaultAnswer, PartialFault, RequestFilter};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn what_no_quota_bounds_is_refused_on_entry() {
    let (fleet, _providing) = peers(json!({"percentage": 50})).await;
    let user = fleet.members[0].client("user");
    let clusters: Api<ForeignCluster> = Api::all(user.clone());
    for name in ["gpu", "services", "limits.cpu", "storage", "requests.cpu", "kubernetes.io/x", "a/b/c"] {
        let resources = json!({"cpu": "1", "memory": "1Gi", name: "1"});
        let sharing =
            json!({"spec": {"incoming": {"sharing": {"percentage": null, "resources": resources}}}});
        let refused =
            clusters.patch("rome", &PatchParams::default(), &Patch::Merge(sharing)).await.unwrap_err();
        assert!(refused.to_string().contains("such as nvidia.com/gpu"), "{name}: {refused}");
    }
    let resources = json!({"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1", "ephemeral-storage": "1Gi", "hugepages-2Mi": "2Mi"});
    share(&fleet, json!({"percentage": null, "resources": resources})).await;
    pass(10).await;
    assert_eq!((sharing(&fleet).await.0.as_str(), admitted(&fleet).await), ("QuotasEnforced", 1000));
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_cannot_be_written_is_told() {
    let (fleet, _providing) = peers(json!({"percentage": 50})).await;
    pass(10).await;
    let writes = RequestFilter::any().resource("resourcequotas").verb("patch");
    fleet.world.add_fault(PartialFault::new("refused", writes, FaultAnswer::Status(422)));
    share(&fleet, json!({"percentage": 10})).await;
    pass(30).await;
    let (reason, message) = sharing(&fleet).await;
    assert_eq!(reason, "QuotasPending");
    assert!(message.contains("ResourceQuota"), "{message}");
    fleet.world.end_fault("refused");
    pass(300).await;
    assert_eq!((sharing(&fleet).await.0.as_str(), offered(&fleet).await.get(CPU)), ("QuotasEnforced", 800));
}

/// A leader that was paused between its look and its writes must not give back what its successor has moved elsewhere.
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_late_gives_nothing_away_twice() {
    let (fleet, providing) = peers(json!({"percentage": 50})).await;
    pass(30).await;
    let slow = RequestFilter::any().party("provider").resource("resourcequotas").verb("patch");
    fleet.world.add_fault(PartialFault::new("slow", slow, FaultAnswer::Slow(8)));
    share(&fleet, json!({"percentage": 100})).await;
    pass(3).await;
    share(&fleet, json!({"percentage": 20})).await;
    let successor = fleet.members[0].client("successor");
    let _successor = tokio::spawn(provide(successor, fleet.world.clock().clone(), Seed::new(4)));
    let mut fell = false;
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let sum = admitted(&fleet).await;
        fell |= sum <= 1600;
        assert!(!fell || sum <= 1600, "{:?}", quotas(&fleet).await);
    }
    assert!(fell && !providing.is_finished());
}
