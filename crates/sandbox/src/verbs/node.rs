//! What a kubelet tells about its node.

use serde_json::{Value, json};

use super::update::Part;
use crate::api::Api;
use crate::store::ObjectKey;

impl Api {
    /// Notes that a simulated node falls silent or is back, and lets the controllers see it.
    pub(crate) fn touch_node(&mut self, node: &str, what: &str) {
        let now = self.now();
        self.log.record(now, &self.cluster, &format!("node {node} {what}"), &[]);
        let time = self.time();
        let silent = self.silent_nodes.contains_key(node);
        let key = ObjectKey::new("", node);
        let outcome = self.row("", "nodes").and_then(|row| {
            self.modify(&row, &key, Part::Status, "kubelet", |object| {
                let conditions = object["status"]["conditions"].as_array_mut();
                for condition in conditions.into_iter().flatten() {
                    condition["lastHeartbeatTime"] = time.clone();
                    if !silent && condition.get("status") == Some(&json!("Unknown")) {
                        let (status, reason, message) =
                            match condition.get("type").and_then(Value::as_str).unwrap_or_default() {
                                "Ready" => ("True", "KubeletReady", "kubelet is posting ready status"),
                                kind => healthy(kind),
                            };
                        condition["status"] = json!(status);
                        condition["reason"] = json!(reason);
                        condition["message"] = json!(message);
                        condition["lastTransitionTime"] = time.clone();
                    }
                }
                // A heart beat that differs, so that the change is seen even within one second.
                let beats = object["metadata"]["annotations"]["sandbox.portolan.dev/beats"].as_str();
                let beats: u64 = beats.and_then(|beats| beats.parse().ok()).unwrap_or(0);
                object["metadata"]["annotations"]["sandbox.portolan.dev/beats"] =
                    Value::from((beats + 1).to_string());
            })
        });
        if let Err(error) = outcome {
            self.log.record(now, &self.cluster, &format!("node {node}: {error}"), &[]);
        }
    }
}

/// What a kubelet says of a resource that is not short.
fn healthy(kind: &str) -> (&'static str, &'static str, &'static str) {
    let (reason, message) = match kind {
        "MemoryPressure" => ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        "DiskPressure" => ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        _ => ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    };
    ("False", reason, message)
}
