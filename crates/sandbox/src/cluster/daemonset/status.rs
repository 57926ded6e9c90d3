//! What a DaemonSet tells of its nodes and pods.

use serde_json::json;

use super::plan::{Daemon, Fit, Place};
use crate::api::Api;
use crate::error::ApiError;
use crate::store::ObjectKey;

const MANAGER: &str = "kube-controller-manager";

/// Writes the status: of each node, the oldest pod counts.
pub(super) fn write(
    api: &mut Api,
    key: &ObjectKey,
    places: &[Place],
    collisions: i64,
) -> Result<(), ApiError> {
    let row = api.row("apps", "daemonsets")?;
    let wanted = || places.iter().filter(|place| place.fit == Fit::Runs);
    let count =
        |has: fn(&Daemon) -> bool| wanted().filter(|place| place.pods.first().is_some_and(has)).count();
    let (desired, available) = (wanted().count(), count(|pod| pod.available));
    let misscheduled = places.iter().filter(|place| place.fit != Fit::Runs && !place.pods.is_empty()).count();
    api.modify_status(&row, key, MANAGER, |set, status| {
        let conditions = status.get("conditions").cloned();
        *status = json!({
            "observedGeneration": set["metadata"]["generation"],
            "desiredNumberScheduled": desired,
            "currentNumberScheduled": count(|_| true),
            "numberMisscheduled": misscheduled,
            "numberReady": count(|pod| pod.ready),
        });
        for (field, count) in [
            ("updatedNumberScheduled", count(|pod| pod.updated)),
            ("numberAvailable", available),
            ("numberUnavailable", desired - available),
        ] {
            if count > 0 {
                status[field] = json!(count);
            }
        }
        if collisions > 0 {
            status["collisionCount"] = json!(collisions);
        }
        if let Some(conditions) = conditions {
            status["conditions"] = conditions;
        }
    })
}
