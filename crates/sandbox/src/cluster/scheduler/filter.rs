//! Which nodes a pod cannot run on, in the words of kube-scheduler.

use serde_json::{Value, json};

use crate::cluster::nodes::tolerates;
use crate::cluster::text;
use crate::cluster::view::{Amounts, NodeView};
use crate::store::{LabelSelector, at};

/// Why a pod cannot run on a node, in the words of kube-scheduler; empty if it can.
pub(super) fn refusals(pod: &Value, node: &NodeView, requests: &Amounts, used: &Amounts) -> Vec<String> {
    let cordon = json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"});
    if at(&node.object, "/spec/unschedulable") == Some(&json!(true)) && !is_tolerated(pod, &cordon) {
        return vec!["node(s) were unschedulable".to_owned()];
    }
    if let Some(taint) = untolerated(pod, &node.object, &["NoSchedule", "NoExecute"]) {
        return vec![format!(
            "node(s) had untolerated taint(s) {{{}: {}}}",
            text(taint, "/key"),
            text(taint, "/value")
        )];
    }
    if !selected(pod, &node.object) {
        return vec!["node(s) didn't match Pod's node affinity/selector".to_owned()];
    }
    let mut out = Vec::new();
    for (resource, wanted) in requests {
        let room =
            node.allocatable.get(resource).copied().unwrap_or(0) - used.get(resource).copied().unwrap_or(0);
        if *wanted > 0 && *wanted > room {
            out.push(match &**resource {
                "pods" => "Too many pods".to_owned(),
                other => format!("Insufficient {other}"),
            });
        }
    }
    out
}

/// The first taint with one of the effects that the pod does not tolerate.
pub(in crate::cluster) fn untolerated<'a>(
    pod: &Value,
    node: &'a Value,
    effects: &[&str],
) -> Option<&'a Value> {
    let taints = at(node, "/spec/taints").and_then(Value::as_array)?;
    taints
        .iter()
        .filter(|taint| effects.contains(&text(taint, "/effect")))
        .find(|taint| !is_tolerated(pod, taint))
}

fn is_tolerated(pod: &Value, taint: &Value) -> bool {
    let tolerations = at(pod, "/spec/tolerations").and_then(Value::as_array);
    tolerations.into_iter().flatten().any(|toleration| tolerates(toleration, taint))
}

/// True if the labels and the name of a node are what the pod asks for.
pub(in crate::cluster) fn selected(pod: &Value, node: &Value) -> bool {
    let labels = at(node, "/metadata/labels");
    if let Some(selector) = at(pod, "/spec/nodeSelector")
        && !LabelSelector::from_map(selector).matches_labels(labels)
    {
        return false;
    }
    let terms =
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let Some(terms) = at(pod, terms).and_then(Value::as_array) else { return true };
    let name = json!({"metadata.name": text(node, "/metadata/name")});
    terms.iter().any(|term| {
        let expressions =
            |field: &str| json!({"matchExpressions": term.get(field).cloned().unwrap_or_else(|| json!([]))});
        (term.get("matchExpressions").is_some() || term.get("matchFields").is_some())
            && LabelSelector::from_json(&expressions("matchExpressions")).matches_labels(labels)
            && LabelSelector::from_json(&expressions("matchFields")).matches_labels(Some(&name))
    })
}
