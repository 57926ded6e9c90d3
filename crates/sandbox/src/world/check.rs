//! What holds in every store at every moment.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::Api;
use crate::quantity;
use crate::store::at;

/// Something that should not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// In which cluster.
    pub cluster: String,
    /// What is wrong, with names and numbers.
    pub message: String,
}

/// Every violation in one cluster.
pub(super) fn check(cluster: &str, api: &Api) -> Vec<Violation> {
    let mut out = Vec::new();
    let mut found = |message: String| out.push(Violation { cluster: cluster.to_owned(), message });
    let mut uids: BTreeMap<String, String> = BTreeMap::new();
    for table in api.store.tables() {
        for object in api.store.scan(&table, None, None) {
            let value = object.value();
            let place = format!("{} {}", table.trim_start_matches('/'), object.key);
            let uid = at(&value, "/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned();
            if let Some(other) = uids.insert(uid.clone(), place.clone()) {
                found(format!("{place} and {other} have the same uid {uid}"));
            }
            if object.revision > api.store.revision() {
                found(format!("{place} is at {}, the store at {}", object.revision, api.store.revision()));
            }
        }
    }
    for message in overcommitted_nodes(api) {
        found(message);
    }
    out
}

/// Nodes whose pods ask for more than there is.
fn overcommitted_nodes(api: &Api) -> Vec<String> {
    let mut used: BTreeMap<(String, &str), i128> = BTreeMap::new();
    for pod in api.store.scan("/pods", None, None) {
        let pod = pod.value();
        let over = matches!(at(&pod, "/status/phase").and_then(Value::as_str), Some("Succeeded" | "Failed"));
        let node = at(&pod, "/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
        if over || node.is_empty() {
            continue;
        }
        for container in at(&pod, "/spec/containers").and_then(Value::as_array).into_iter().flatten() {
            for resource in ["cpu", "memory"] {
                let request =
                    at(container, &format!("/resources/requests/{resource}")).and_then(Value::as_str);
                *used.entry((node.to_owned(), resource)).or_default() +=
                    request.and_then(quantity::parse).unwrap_or(0);
            }
        }
    }
    let mut out = Vec::new();
    for ((node, resource), used) in used {
        let Some(found) = api.store.get("/nodes", &crate::store::ObjectKey::new("", &node)) else { continue };
        let allocatable = found.value();
        let allocatable =
            at(&allocatable, &format!("/status/allocatable/{resource}")).and_then(Value::as_str);
        let room = allocatable.and_then(quantity::parse).unwrap_or(0);
        if used > room {
            out.push(format!("pods on node {node} ask for {used}m {resource}, it has {room}m"));
        }
    }
    out
}
