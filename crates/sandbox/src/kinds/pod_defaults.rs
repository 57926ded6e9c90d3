//! The defaults of pods, and how a field gets a default.

use serde_json::{Map, Value, json};

/// Sets a field that is absent.
pub(super) fn ensure(object: &mut Value, key: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.entry(key.to_owned()).or_insert(value);
    }
}

pub(super) fn each<'a>(object: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

/// The defaults of a pod's spec, in a pod or in a template.
pub(super) fn pod_spec(spec: Option<&mut Value>) {
    let Some(spec) = spec else { return };
    ensure(spec, "restartPolicy", json!("Always"));
    ensure(spec, "terminationGracePeriodSeconds", json!(30));
    ensure(spec, "dnsPolicy", json!("ClusterFirst"));
    ensure(spec, "securityContext", json!({}));
    ensure(spec, "schedulerName", json!("default-scheduler"));
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        ensure(spec, "serviceAccount", account);
    }
    for list in ["initContainers", "containers"] {
        for container in each(spec, list) {
            container_defaults(container);
        }
    }
    for volume in each(spec, "volumes") {
        for source in ["configMap", "secret", "projected", "downwardAPI"] {
            if let Some(source) = volume.get_mut(source) {
                ensure(source, "defaultMode", json!(420));
            }
        }
    }
}

fn container_defaults(container: &mut Value) {
    ensure(container, "resources", json!({}));
    ensure(container, "terminationMessagePath", json!("/dev/termination-log"));
    ensure(container, "terminationMessagePolicy", json!("File"));
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let last = image.rsplit('/').next().unwrap_or_default();
    let moving = !image.contains('@') && (!last.contains(':') || last.ends_with(":latest"));
    ensure(container, "imagePullPolicy", json!(if moving { "Always" } else { "IfNotPresent" }));
    for port in each(container, "ports") {
        ensure(port, "protocol", json!("TCP"));
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe) {
            for (key, value) in [
                ("timeoutSeconds", 1),
                ("periodSeconds", 10),
                ("successThreshold", 1),
                ("failureThreshold", 3),
            ] {
                ensure(probe, key, json!(value));
            }
            if let Some(http) = probe.get_mut("httpGet") {
                ensure(http, "path", json!("/"));
                ensure(http, "scheme", json!("HTTP"));
            }
        }
    }
    for variable in each(container, "env") {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            ensure(field, "apiVersion", json!("v1"));
        }
    }
    // A limit without a request is a request too.
    if let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut)
        && let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned()
    {
        let requests = resources.entry("requests").or_insert_with(|| Value::Object(Map::new()));
        for (name, limit) in limits {
            ensure(requests, &name, limit);
        }
    }
}
