//! Emptying a node before its machine goes, within the disruption budgets of its pods.

use http::Method;
use portolan_runtime::CallError;
use serde_json::{Value, json};

use super::access::{Access, NOT_FOUND, unless};
use super::json::{annotation, deleting, flag, holds, list, name, namespace, text};

/// How far the emptying of a node is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Drain {
    /// No pod has to go any more.
    Done,
    /// These pods are still there, and why.
    Waiting(String),
}

/// Cordons a node and evicts its pods; those of DaemonSets and of the node itself stay.
pub(super) async fn drain(access: &Access, node: &Value) -> Result<Drain, CallError> {
    let path = format!("/api/v1/nodes/{}", name(node));
    if !flag(node, "/spec/unschedulable") {
        let cordon = json!({"spec": {"unschedulable": true}});
        unless(access.send(Method::PATCH, &path, Some(&cordon)).await, NOT_FOUND)?;
    }
    let on_node = format!("/api/v1/pods?fieldSelector=spec.nodeName={}", name(node));
    let pods = access.send(Method::GET, &on_node, None).await?;
    let mut waiting = Vec::new();
    for pod in list(&pods, "/items").iter().filter(|pod| must_go(pod)) {
        let about = format!("{}/{}", namespace(pod), name(pod));
        if deleting(pod) {
            // Nobody on a node that is gone finishes the deletion of its pods.
            if holds(node, "Ready") {
                waiting.push(format!(
                    "* Pod {about}: deletionTimestamp set, but still not removed from the Node"
                ));
            }
            continue;
        }
        match evict(access, pod).await {
            Ok(()) => waiting.push(format!("* Pod {about}: eviction started")),
            Err(error) if error.code() == Some(429) => {
                waiting.push(format!("* Pod {about}: {}", budget(&error)))
            }
            Err(error) => return Err(error),
        }
    }
    if waiting.is_empty() {
        return Ok(Drain::Done);
    }
    Ok(Drain::Waiting(format!("Drain not completed yet:\n{}", waiting.join("\n"))))
}

fn must_go(pod: &Value) -> bool {
    let of_daemon_set =
        list(pod, "/metadata/ownerReferences").iter().any(|owner| text(owner, "/kind") == "DaemonSet");
    !of_daemon_set && annotation(pod, "kubernetes.io/config.mirror").is_none()
}

async fn evict(access: &Access, pod: &Value) -> Result<(), CallError> {
    let path = format!("/api/v1/namespaces/{}/pods/{}/eviction", namespace(pod), name(pod));
    let eviction = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name(pod), "namespace": namespace(pod)},
    });
    unless(access.send(Method::POST, &path, Some(&eviction)).await, NOT_FOUND)
}

/// What the API server says about the budget that does not allow an eviction.
fn budget(error: &CallError) -> String {
    let told = "cannot evict pod as it would violate the pod's disruption budget.";
    let cause = match error {
        CallError::Refused { source, .. } => match source.as_ref() {
            kube::Error::Api(status) => status.details.as_ref().and_then(|details| details.causes.first()),
            _ => None,
        },
        CallError::Silent { .. } | CallError::Busy { .. } | CallError::NotLeading { .. } => None,
    };
    cause.map_or_else(|| told.to_owned(), |cause| format!("{told} {}", cause.message))
}
