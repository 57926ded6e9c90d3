//! Whether a rollout gets on: the `Progressing` condition and its deadline.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{number, set_condition, text};

const COUNTS: [&str; 4] = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"];

/// How a rollout stands.
pub(super) struct Progress<'a> {
    /// The replica set of the present template.
    pub(super) set: &'a str,
    /// Everything is as asked for.
    pub(super) done: bool,
    /// No pod of another template is left.
    pub(super) settled: bool,
    /// In seconds.
    pub(super) deadline: i64,
}

impl Progress<'_> {
    /// Writes the condition into the new status, given the one before.
    pub(super) fn write(&self, before: &Value, status: &mut Value, now: Timestamp, time: &Value) {
        let last = condition(before);
        let reason = last.map_or("", |last| text(last, "/reason"));
        let moved = last.is_none() || COUNTS.iter().any(|count| before.get(*count) != status.get(*count));
        let since =
            last.and_then(|last| text(last, "/lastUpdateTime").parse::<Timestamp>().ok()).unwrap_or(now);
        let late = !moved && now.duration_since(since) >= SignedDuration::from_secs(self.deadline);
        let set = self.set;
        let (state, reason, message) = match () {
            () if self.done => (
                "True",
                "NewReplicaSetAvailable",
                format!("ReplicaSet \"{set}\" has successfully progressed."),
            ),
            // A finished rollout stays one, whatever becomes of its pods.
            () if reason == "NewReplicaSetAvailable" && self.settled => return,
            () if reason == "ProgressDeadlineExceeded" && !moved => return,
            () if late => (
                "False",
                "ProgressDeadlineExceeded",
                format!("ReplicaSet \"{set}\" has timed out progressing."),
            ),
            () if last.is_none() => {
                ("True", "FoundNewReplicaSet", format!("Found new replica set \"{set}\""))
            }
            () if !moved => return,
            () => ("True", "ReplicaSetUpdated", format!("ReplicaSet \"{set}\" is progressing.")),
        };
        let update = json!({"type": "Progressing", "status": state, "reason": reason, "message": message, "lastUpdateTime": time});
        set_condition(status, update, time);
        if moved
            && let Some(written) = status["conditions"]
                .as_array_mut()
                .and_then(|all| all.iter_mut().find(|c| text(c, "/type") == "Progressing"))
        {
            written["lastUpdateTime"] = time.clone();
        }
    }
}

/// Writes that a replica set for the present template was made.
pub(super) fn created(status: &mut Value, set: &str, time: &Value) {
    let message = format!("Created new replica set \"{set}\"");
    let update = json!({"type": "Progressing", "status": "True", "reason": "NewReplicaSetCreated", "message": message, "lastUpdateTime": time});
    set_condition(status, update, time);
}

fn condition(status: &Value) -> Option<&Value> {
    let conditions = status.get("conditions").and_then(Value::as_array)?;
    conditions.iter().find(|condition| text(condition, "/type") == "Progressing")
}

/// When a rollout that does not get on must be looked at again.
pub(super) fn look_again(deployment: &Value, now: Timestamp) -> Option<Duration> {
    let last = condition(deployment.get("status")?)?;
    if !matches!(text(last, "/reason"), "ReplicaSetUpdated" | "NewReplicaSetCreated" | "FoundNewReplicaSet") {
        return None;
    }
    let since: Timestamp = text(last, "/lastUpdateTime").parse().ok()?;
    let left = SignedDuration::from_secs(number(deployment, "/spec/progressDeadlineSeconds"))
        - now.duration_since(since);
    Duration::try_from(left).ok().map(|left| left.max(Duration::from_millis(1)))
}
