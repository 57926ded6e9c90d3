//! The defaults that the API server fills in for built-in kinds.

use serde_json::{Value, json};

use super::pod_defaults::{each, ensure, pod_spec};
use crate::registry::Resource;
use crate::store::at;

/// Fills in what the sender left out.
pub(crate) fn apply_defaults(row: &Resource, object: &mut Value) {
    if row.custom {
        return;
    }
    match (row.group.as_str(), row.kind.as_str()) {
        ("", "Namespace") => namespace(object),
        ("", "Pod") => {
            pod_spec(object.get_mut("spec"));
            if let Some(spec) = object.get_mut("spec") {
                ensure(spec, "enableServiceLinks", json!(true));
            }
        }
        ("", "PersistentVolumeClaim") => {
            if let Some(spec) = object.get_mut("spec") {
                ensure(spec, "volumeMode", json!("Filesystem"));
            }
        }
        ("", "Service") => service(object),
        ("", "Secret") => secret(object),
        ("", "LimitRange") => limit_range(object),
        ("apps", "Deployment") => deployment(object),
        ("apps", "ReplicaSet") => {
            if let Some(spec) = object.get_mut("spec") {
                ensure(spec, "replicas", json!(1));
                pod_spec(spec.pointer_mut("/template/spec"));
            }
        }
        ("apps", "StatefulSet") => super::sets::stateful_set_defaults(object),
        ("apps", "DaemonSet") => super::sets::daemon_set_defaults(object),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaler(object),
        ("discovery.k8s.io", "EndpointSlice") => endpoint_slice(object),
        ("networking.k8s.io", "NetworkPolicy") => network_policy(object),
        ("batch", "Job") => job(object),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => binding(object),
        ("apiextensions.k8s.io", _) => definition(object),
        _ => {}
    }
}

/// What containers get if they say nothing: the most there is, and as a request what they get as a limit.
fn limit_range(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    for limit in each(spec, "limits").filter(|limit| limit["type"] == "Container") {
        for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
            for (resource, amount) in limit[from].as_object().cloned().unwrap_or_default() {
                ensure(limit, to, json!({}));
                ensure(&mut limit[to], &resource, amount);
            }
        }
    }
}

fn deployment(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    ensure(spec, "replicas", json!(1));
    ensure(spec, "revisionHistoryLimit", json!(10));
    ensure(spec, "progressDeadlineSeconds", json!(600));
    ensure(spec, "strategy", json!({}));
    if let Some(strategy) = spec.get_mut("strategy") {
        ensure(strategy, "type", json!("RollingUpdate"));
        if strategy.get("type") == Some(&json!("RollingUpdate")) {
            ensure(strategy, "rollingUpdate", json!({}));
            if let Some(rolling) = strategy.get_mut("rollingUpdate") {
                ensure(rolling, "maxUnavailable", json!("25%"));
                ensure(rolling, "maxSurge", json!("25%"));
            }
        }
    }
    pod_spec(spec.pointer_mut("/template/spec"));
}

fn job(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    // A job with neither number is a single pod; one with parallelism alone is a work queue.
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        ensure(spec, "completions", json!(1));
    }
    ensure(spec, "parallelism", json!(1));
    ensure(spec, "backoffLimit", json!(6));
    ensure(spec, "completionMode", json!("NonIndexed"));
    ensure(spec, "suspend", json!(false));
    ensure(spec, "manualSelector", json!(false));
    ensure(spec, "podReplacementPolicy", json!("TerminatingOrFailed"));
    pod_spec(spec.pointer_mut("/template/spec"));
}

fn namespace(object: &mut Value) {
    let name = at(object, "/metadata/name").cloned().unwrap_or_default();
    if let Some(metadata) = object.get_mut("metadata") {
        ensure(metadata, "labels", json!({}));
        if let Some(labels) = metadata.get_mut("labels") {
            ensure(labels, "kubernetes.io/metadata.name", name);
        }
    }
}

fn autoscaler(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    ensure(spec, "minReplicas", json!(1));
    let usage = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}});
    ensure(spec, "metrics", json!([{"type": "Resource", "resource": usage}]));
}

fn endpoint_slice(object: &mut Value) {
    for endpoint in each(object, "endpoints") {
        ensure(endpoint, "conditions", json!({}));
    }
    for port in each(object, "ports") {
        ensure(port, "name", json!(""));
        ensure(port, "protocol", json!("TCP"));
    }
}

fn network_policy(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    let mut types = vec!["Ingress"];
    if spec.get("egress").is_some() {
        types.push("Egress");
    }
    ensure(spec, "policyTypes", json!(types));
    for direction in ["ingress", "egress"] {
        for rule in each(spec, direction) {
            for port in each(rule, "ports") {
                ensure(port, "protocol", json!("TCP"));
            }
        }
    }
}

fn secret(object: &mut Value) {
    string_data(object);
    ensure(object, "type", json!("Opaque"));
}

fn binding(object: &mut Value) {
    if let Some(role) = object.get_mut("roleRef") {
        ensure(role, "apiGroup", json!("rbac.authorization.k8s.io"));
    }
    for subject in each(object, "subjects") {
        if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
            ensure(subject, "apiGroup", json!("rbac.authorization.k8s.io"));
        }
    }
}

fn definition(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    ensure(spec, "conversion", json!({"strategy": "None"}));
    if let Some(names) = spec.get_mut("names") {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        ensure(names, "singular", json!(kind.to_lowercase()));
        ensure(names, "listKind", json!(format!("{kind}List")));
    }
}

fn service(object: &mut Value) {
    ensure(object, "spec", json!({}));
    let Some(spec) = object.get_mut("spec") else { return };
    ensure(spec, "type", json!("ClusterIP"));
    ensure(spec, "sessionAffinity", json!("None"));
    for port in each(spec, "ports") {
        ensure(port, "protocol", json!("TCP"));
        let target = port.get("port").cloned();
        if let Some(target) = target {
            ensure(port, "targetPort", target);
        }
    }
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        ensure(spec, "externalTrafficPolicy", json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        ensure(spec, "allocateLoadBalancerNodePorts", json!(true));
    }
    if spec.get("type") != Some(&json!("ExternalName")) {
        ensure(spec, "internalTrafficPolicy", json!("Cluster"));
    }
}

pub(super) fn string_data(object: &mut Value) {
    let Some(plain) = object.as_object_mut().and_then(|object| object.remove("stringData")) else { return };
    ensure(object, "data", json!({}));
    for (key, value) in plain.as_object().into_iter().flatten() {
        object["data"][key.as_str()] =
            json!(k8s_openapi::ByteString(value.as_str().unwrap_or_default().into()));
    }
}
