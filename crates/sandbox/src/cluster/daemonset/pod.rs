//! The pods of a DaemonSet, and the nodes that they are for.

use serde_json::{Value, json};

use super::plan::Fit;
use crate::cluster::revisions::{REVISION, Revision};
use crate::cluster::scheduler::{selected, untolerated};
use crate::cluster::{control_reference, text};
use crate::store::at;

/// Where a DaemonSet tells how often its template has changed, which its pods repeat.
const GENERATION: &str = "/metadata/annotations/deprecated.daemonset.template.generation";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// A pod for a node.
pub(super) fn for_node(set: &Value, revision: &Revision, node: &str) -> Value {
    let mut pod = tolerant(revision.template.clone());
    if !pod["metadata"].is_object() {
        pod["metadata"] = json!({});
    }
    let metadata = &mut pod["metadata"];
    metadata["generateName"] = json!(format!("{}-", text(set, "/metadata/name")));
    metadata["ownerReferences"] = json!([control_reference(set)]);
    metadata["labels"][REVISION] = json!(revision.hash());
    let generation = text(set, GENERATION);
    if !generation.is_empty() {
        metadata["labels"]["pod-template-generation"] = json!(generation);
    }
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    pod["spec"]["affinity"]["nodeAffinity"][REQUIRED] =
        json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
    pod
}

/// The node that a pod is bound to, or made for.
pub(super) fn target(pod: &Value) -> &str {
    let field = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/\
                 matchFields/0/values/0";
    match text(pod, "/spec/nodeName") {
        "" => text(pod, field),
        bound => bound,
    }
}

/// The template with the tolerations that every pod of a DaemonSet has: it runs on nodes that are in trouble or cordoned.
pub(super) fn tolerant(mut template: Value) -> Value {
    let host_network = at(&template, "/spec/hostNetwork") == Some(&json!(true));
    let mut tolerations =
        at(&template, "/spec/tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    for (taint, effect, always) in [
        ("not-ready", "NoExecute", true),
        ("unreachable", "NoExecute", true),
        ("disk-pressure", "NoSchedule", true),
        ("memory-pressure", "NoSchedule", true),
        ("pid-pressure", "NoSchedule", true),
        ("unschedulable", "NoSchedule", true),
        ("network-unavailable", "NoSchedule", host_network),
    ] {
        let toleration =
            json!({"key": format!("node.kubernetes.io/{taint}"), "operator": "Exists", "effect": effect});
        if always && !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
    template["spec"]["tolerations"] = json!(tolerations);
    template
}

/// Whether a node is one for a pod of that template, tolerations included.
pub(super) fn fit(template: &Value, node: &Value) -> Fit {
    let named = text(template, "/spec/nodeName");
    let is_named = named.is_empty() || named == text(node, "/metadata/name");
    if !is_named || !selected(template, node) || untolerated(template, node, &["NoExecute"]).is_some() {
        return Fit::Leaves;
    }
    if untolerated(template, node, &["NoSchedule"]).is_some() { Fit::Stays } else { Fit::Runs }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(taints: Value) -> Value {
        json!({"metadata": {"name": "a", "labels": {"disk": "ssd"}}, "spec": {"taints": taints}})
    }

    #[test]
    fn pods_run_where_they_are_wanted_and_tolerated() {
        let taint = |key: &str, effect: &str| node(json!([{"key": key, "effect": effect}]));
        let of = |spec: Value| tolerant(json!({"spec": spec}));
        let plain = of(json!({}));
        for (expected, template, node) in [
            (Fit::Runs, &plain, node(json!([]))),
            (Fit::Runs, &plain, taint("node.kubernetes.io/unschedulable", "NoSchedule")),
            (Fit::Runs, &plain, taint("node.kubernetes.io/unreachable", "NoExecute")),
            (Fit::Runs, &plain, taint("mine", "PreferNoSchedule")),
            (Fit::Stays, &plain, taint("mine", "NoSchedule")),
            (Fit::Leaves, &plain, taint("mine", "NoExecute")),
            (Fit::Stays, &plain, taint("node.kubernetes.io/network-unavailable", "NoSchedule")),
            (
                Fit::Runs,
                &of(json!({"hostNetwork": true})),
                taint("node.kubernetes.io/network-unavailable", "NoSchedule"),
            ),
            (Fit::Runs, &of(json!({"nodeSelector": {"disk": "ssd"}})), node(json!([]))),
            (Fit::Leaves, &of(json!({"nodeSelector": {"disk": "hdd"}})), node(json!([]))),
            (Fit::Leaves, &of(json!({"nodeName": "b"})), node(json!([]))),
        ] {
            assert_eq!(fit(template, &node), expected, "{template} on {node}");
        }
    }
}
