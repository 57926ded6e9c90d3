//! A pod's line.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{age, items, number, or_none, text};

pub(super) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let all = items(pod, "/spec/containers").count();
    let statuses = items(pod, "/status/containerStatuses");
    let ready = statuses.clone().filter(|status| status.get("ready") == Some(&Value::Bool(true))).count();
    let restarts: i64 = statuses.map(|status| number(status, "/restartCount")).sum();
    vec![
        json!(text(pod, "/metadata/name")),
        json!(format!("{ready}/{all}")),
        json!(reason(pod)),
        json!(restarts.to_string()),
        json!(age(pod, "/metadata/creationTimestamp", now)),
        json!(or_none(text(pod, "/status/podIP"))),
        json!(or_none(text(pod, "/spec/nodeName"))),
        json!(or_none(text(pod, "/status/nominatedNodeName"))),
        json!("<none>"),
    ]
}

/// What the status column says: the most telling of all that is known.
fn reason(pod: &Value) -> String {
    if !text(pod, "/metadata/deletionTimestamp").is_empty() {
        let lost = text(pod, "/status/reason") == "NodeLost";
        return if lost { "Unknown".to_owned() } else { "Terminating".to_owned() };
    }
    let mut reason = match text(pod, "/status/reason") {
        "" => text(pod, "/status/phase").to_owned(),
        reason => reason.to_owned(),
    };
    for status in items(pod, "/status/containerStatuses") {
        let waiting = text(status, "/state/waiting/reason");
        let ended = text(status, "/state/terminated/reason");
        if !waiting.is_empty() {
            reason = waiting.to_owned();
        } else if !ended.is_empty() {
            reason = ended.to_owned();
        }
    }
    let assigned = !text(pod, "/spec/nodeName").is_empty();
    if reason == "Pending" && assigned { "ContainerCreating".to_owned() } else { reason }
}
