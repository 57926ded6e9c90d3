//! What a StatefulSet tells of its pods.

use jiff::SignedDuration;
use serde_json::json;

use super::{Pods, revision_of};
use crate::api::Api;
use crate::cluster::{number, text};
use crate::error::ApiError;
use crate::store::ObjectKey;

const MANAGER: &str = "kube-controller-manager";

/// The revisions of a set.
pub(super) struct Names<'a> {
    pub(super) current: &'a str,
    pub(super) update: &'a str,
    pub(super) collisions: i64,
}

/// Writes the status; a set that is being deleted keeps the revisions that it told.
pub(super) fn write(
    api: &mut Api,
    key: &ObjectKey,
    pods: &Pods,
    names: Option<&Names<'_>>,
) -> Result<(), ApiError> {
    let (row, now) = (api.row("apps", "statefulsets")?, api.now());
    api.modify_status(&row, key, MANAGER, |set, status| {
        let told = Names {
            current: text(set, "/status/currentRevision"),
            update: text(set, "/status/updateRevision"),
            collisions: number(set, "/status/collisionCount"),
        };
        let Names { mut current, update, collisions } = *names.unwrap_or(&told);
        let least = SignedDuration::from_secs(number(set, "/spec/minReadySeconds"));
        let live = || pods.values().map(|(_, pod)| pod);
        let is_available = |wait: SignedDuration| wait <= SignedDuration::ZERO;
        let available =
            live().filter(|pod| pod.until_available(least, now).is_some_and(is_available)).count();
        let ready = live().filter(|pod| pod.ready).count();
        let of = |revision: &str| live().filter(|pod| !pod.deleting && revision_of(pod) == revision).count();
        let updated = of(update);
        let wanted = usize::try_from(number(set, "/spec/replicas")).unwrap_or(0);
        let rolls = text(set, "/spec/updateStrategy/type") == "RollingUpdate";
        if rolls && [updated, ready, pods.len()] == [wanted; 3] {
            current = update;
        }
        let conditions = status.get("conditions").cloned();
        *status = json!({
            "observedGeneration": set["metadata"]["generation"],
            "replicas": pods.len(),
            "availableReplicas": available,
            "collisionCount": collisions,
        });
        let counted =
            [("readyReplicas", ready), ("currentReplicas", of(current)), ("updatedReplicas", updated)];
        for (field, count) in counted.into_iter().filter(|(_, count)| *count > 0) {
            status[field] = json!(count);
        }
        for (field, name) in [("currentRevision", current), ("updateRevision", update)] {
            if !name.is_empty() {
                status[field] = json!(name);
            }
        }
        if let Some(conditions) = conditions {
            status["conditions"] = conditions;
        }
    })
}
