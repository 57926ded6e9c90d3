//! The rules of built-in kinds, worded as the API server words them.

use serde_json::{Value, json};

use super::names;
use crate::crd::validate_definition;
use crate::error::Cause;
use crate::registry::Resource;
use crate::store::{LabelSelector, at};

/// What is wrong with a new object.
pub(crate) fn validate_create(row: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = at(object, "/metadata/name").and_then(Value::as_str).unwrap_or_default();
    // Roles and requests for certificates may be called almost anything (system:node); services and namespaces are DNS labels.
    let wrong = match () {
        () if row.group == "rbac.authorization.k8s.io" || super::is_csr(row) => names::path_segment(name),
        () if row.is("", "namespaces") || row.is("", "services") => names::label(name),
        () => names::subdomain(name),
    };
    causes.extend(wrong.iter().map(|told| Cause::invalid("metadata.name", &json!(name), told)));
    causes.extend(metadata(row, object));
    causes.extend(validate(row, object));
    causes
}

/// What is wrong with a change of an object.
pub(crate) fn validate_update(row: &Resource, old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = metadata(row, new);
    causes.extend(validate(row, new));
    let mut immutable = |field: &str| {
        let pointer = format!("/{}", field.replace('.', "/"));
        let (before, after) = (at(old, &pointer), at(new, &pointer));
        if before != after {
            let shown = after.cloned().unwrap_or_default();
            causes.push(Cause::invalid(field, &shown, "field is immutable"));
        }
    };
    if ["deployments", "replicasets", "daemonsets"].iter().any(|plural| row.is("apps", plural)) {
        immutable("spec.selector");
    }
    if row.is("batch", "jobs") {
        immutable("spec.selector");
        immutable("spec.completionMode");
        immutable("spec.podFailurePolicy");
    }
    if row.is("rbac.authorization.k8s.io", "rolebindings")
        || row.is("rbac.authorization.k8s.io", "clusterrolebindings")
    {
        immutable("roleRef");
    }
    if row.is("batch", "jobs") {
        causes.extend(job_template_update(old, new));
    }
    if row.is("apps", "statefulsets") {
        let rest = |object: &Value| {
            let mut spec = object.get("spec").cloned().unwrap_or_default();
            if let Some(fields) = spec.as_object_mut() {
                fields.retain(|name, _| !MUTABLE_OF_SETS.contains(&name.as_str()));
            }
            spec
        };
        if rest(old) != rest(new) {
            let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are \
                forbidden";
            causes.push(Cause::forbidden("spec", detail));
        }
    }
    if row.is("", "configmaps") || row.is("", "secrets") {
        if old.get("immutable") == Some(&json!(true)) {
            for field in ["data", "binaryData", "immutable"] {
                if old.get(field) != new.get(field) {
                    causes.push(Cause::forbidden(field, "field is immutable when `immutable` is set"));
                }
            }
        }
        if row.is("", "secrets") && old.get("type") != new.get("type") {
            let shown = new.get("type").cloned().unwrap_or_default();
            causes.push(Cause::invalid("type", &shown, "field is immutable"));
        }
    }
    if row.is("apiextensions.k8s.io", "customresourcedefinitions")
        && crate::kinds::condition_is_true(old, "Established")
    {
        let field = |object: &Value| at(object, "/spec/scope").cloned().unwrap_or_default();
        if field(old) != field(new) {
            causes.push(Cause::invalid("spec.scope", &field(new), "field is immutable"));
        }
    }
    if row.is("", "pods") {
        causes.extend(pod_update(old, new));
    }
    causes
}

/// What may change in a StatefulSet.
const MUTABLE_OF_SETS: &[&str] = &[
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];
/// Finalizers that need no domain.
const FINALIZERS: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];
/// The most that annotations may take together.
const ANNOTATIONS: usize = 256 << 10;

/// The rules of labels, annotations and finalizers.
fn metadata(row: &Resource, object: &Value) -> Vec<Cause> {
    let pairs = |field: &str| {
        let found = at(object, &format!("/metadata/{field}")).and_then(Value::as_object);
        found.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
    };
    let bad = |field: &str, shown: &str, told: &str| {
        Cause::invalid(format!("metadata.{field}"), &json!(shown), told)
    };
    let mut causes = Vec::new();
    for (key, value) in pairs("labels") {
        causes.extend(names::qualified(key).iter().map(|told| bad("labels", key, told)));
        causes.extend(names::label_value(value).iter().map(|told| bad("labels", value, told)));
    }
    for (key, _) in pairs("annotations") {
        causes.extend(names::qualified(&key.to_lowercase()).iter().map(|told| bad("annotations", key, told)));
    }
    if pairs("annotations").map(|(key, value)| key.len() + value.len()).sum::<usize>() > ANNOTATIONS {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATIONS));
    }
    for (index, finalizer) in super::strings(object, "/metadata/finalizers").into_iter().enumerate() {
        causes.extend(names::qualified(finalizer).iter().map(|told| bad("finalizers", finalizer, told)));
        let core = !row.custom && row.group != "apiextensions.k8s.io";
        if core && !finalizer.contains('/') && !FINALIZERS.contains(&finalizer) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(bad(&format!("finalizers[{index}]"), finalizer, detail));
        }
    }
    causes
}

/// The keys of a config map or a secret.
fn keys(object: &Value, fields: &[&str], causes: &mut Vec<Cause>) {
    for field in fields {
        for key in object.get(*field).and_then(Value::as_object).into_iter().flatten().map(|(key, _)| key) {
            let wrong = names::config_key(key);
            causes.extend(
                wrong.iter().map(|told| Cause::invalid(format!("{field}[{key}]"), &json!(key), told)),
            );
        }
    }
}

fn validate(row: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if row.custom {
        return causes;
    }
    match (row.group.as_str(), row.kind.as_str()) {
        ("", "Pod") => pod_spec(object.get("spec"), "spec", &mut causes),
        ("", "ConfigMap") => keys(object, &["data", "binaryData"], &mut causes),
        ("", "Secret") => keys(object, &["data"], &mut causes),
        ("", "ResourceQuota") => causes.extend(super::quota::validate_quota(object)),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            let kind = at(object, "/roleRef/kind").cloned().unwrap_or_else(|| json!(""));
            let known: &[&str] =
                if row.kind == "RoleBinding" { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
            if !known.iter().any(|known| kind == *known) {
                causes.push(Cause::unsupported("roleRef.kind", &kind, known));
            }
        }
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") => {
            workload(&row.kind, object, &mut causes);
            match row.kind.as_str() {
                "Deployment" => strategy(object, &mut causes),
                "StatefulSet" => super::sets::validate_stateful_set(object, &mut causes),
                "DaemonSet" => super::sets::validate_daemon_set(object, &mut causes),
                _ => {}
            }
        }
        ("batch", "Job") => {
            pod_spec(at(object, "/spec/template/spec"), "spec.template.spec", &mut causes);
            let policy = at(object, "/spec/template/spec/restartPolicy");
            if policy == Some(&json!("Always")) {
                causes.push(Cause {
                    reason: "FieldValueNotSupported",
                    field: "spec.template.spec.restartPolicy".to_owned(),
                    message: "Unsupported value: \"Always\": supported values: \"OnFailure\", \"Never\""
                        .to_owned(),
                });
            }
        }
        ("certificates.k8s.io", "CertificateSigningRequest") => causes.extend(super::csr::validate(object)),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => causes.extend(validate_definition(object)),
        ("", "Service") => {
            let kind = at(object, "/spec/type").and_then(Value::as_str).unwrap_or_default();
            let headless = at(object, "/spec/clusterIP") == Some(&json!("None"));
            let ports = at(object, "/spec/ports").and_then(Value::as_array);
            if ports.is_none_or(Vec::is_empty) && kind != "ExternalName" && !headless {
                causes.push(Cause::required("spec.ports", ""));
            }
            for (index, port) in ports.into_iter().flatten().enumerate() {
                let number = port.get("port").and_then(Value::as_i64).unwrap_or_default();
                if !(1..=65535).contains(&number) {
                    let field = format!("spec.ports[{index}].port");
                    causes.push(Cause::invalid(
                        field,
                        &json!(number),
                        "must be between 1 and 65535, inclusive",
                    ));
                }
                if port.get("name").is_none() && ports.is_some_and(|ports| ports.len() > 1) {
                    causes.push(Cause::required(format!("spec.ports[{index}].name"), ""));
                }
            }
        }
        _ => {}
    }
    causes
}

fn workload(kind: &str, object: &Value, causes: &mut Vec<Cause>) {
    if let Some(replicas) =
        at(object, "/spec/replicas").filter(|replicas| replicas.as_i64().is_some_and(|n| n < 0))
    {
        causes.push(Cause::invalid("spec.replicas", replicas, "must be greater than or equal to 0"));
    }
    match at(object, "/spec/selector") {
        None => causes.push(Cause::required("spec.selector", "")),
        Some(selector) => {
            let labels = at(object, "/spec/template/metadata/labels");
            if selector.as_object().is_none_or(serde_json::Map::is_empty) {
                // As Kubernetes says it of replica sets, too.
                let named = if kind == "ReplicaSet" { "Deployment" } else { kind }.to_lowercase();
                let told = format!("empty selector is invalid for {named}");
                causes.push(Cause::invalid("spec.selector", selector, &told));
            } else if !LabelSelector::from_json(selector).matches_labels(labels) {
                let shown = labels.cloned().unwrap_or_else(|| json!({}));
                let detail = "`selector` does not match template `labels`";
                causes.push(Cause::invalid("spec.template.metadata.labels", &shown, detail));
            }
        }
    }
    pod_spec(at(object, "/spec/template/spec"), "spec.template.spec", causes);
    let restart = at(object, "/spec/template/spec/restartPolicy").cloned().unwrap_or_default();
    if !restart.is_null() && restart != "Always" {
        causes.push(Cause::unsupported("spec.template.spec.restartPolicy", &restart, &["Always"]));
    }
}

/// How a Deployment replaces its pods; defaults are filled in by then.
fn strategy(object: &Value, causes: &mut Vec<Cause>) {
    let Some(strategy) = at(object, "/spec/strategy") else { return };
    let kind = strategy.get("type").cloned().unwrap_or_default();
    let rolling = strategy.get("rollingUpdate").filter(|rolling| !rolling.is_null());
    match kind.as_str() {
        Some("RollingUpdate") => {
            let zero = |field: &str| {
                let value = rolling.and_then(|rolling| rolling.get(field));
                value.is_some_and(|value| *value == json!(0) || *value == json!("0%"))
            };
            if zero("maxSurge") && zero("maxUnavailable") {
                let (field, told) =
                    ("spec.strategy.rollingUpdate.maxUnavailable", "may not be 0 when `maxSurge` is 0");
                causes.push(Cause::invalid(field, &json!(0), told));
            }
        }
        Some("Recreate") if rolling.is_some() => {
            let told = "may not be specified when strategy `type` is 'Recreate'";
            causes.push(Cause::forbidden("spec.strategy.rollingUpdate", told));
        }
        Some("Recreate") => {}
        _ => causes.push(Cause {
            reason: "FieldValueNotSupported",
            field: "spec.strategy".to_owned(),
            message: format!(
                "Unsupported value: {{\"Type\":{kind},\"RollingUpdate\":null}}: supported values: \"Recreate\", \
                 \"RollingUpdate\""
            ),
        }),
    }
}

fn pod_spec(spec: Option<&Value>, path: &str, causes: &mut Vec<Cause>) {
    let containers = spec.and_then(|spec| spec.get("containers")).and_then(Value::as_array);
    if containers.is_none_or(Vec::is_empty) {
        causes.push(Cause::required(format!("{path}.containers"), ""));
    }
    let mut names: Vec<&str> = Vec::new();
    for (index, container) in containers.into_iter().flatten().enumerate() {
        let field = format!("{path}.containers[{index}]");
        let text = |key: &str| container.get(key).and_then(Value::as_str).unwrap_or_default();
        if text("name").is_empty() {
            causes.push(Cause::required(format!("{field}.name"), ""));
        } else if let [first, ..] = names::label(text("name")).as_slice() {
            causes.push(Cause::invalid(format!("{field}.name"), &json!(text("name")), first));
        } else if names.contains(&text("name")) {
            causes.push(Cause {
                reason: "FieldValueDuplicate",
                field: format!("{field}.name"),
                message: format!("Duplicate value: {:?}", text("name")),
            });
        }
        names.push(text("name"));
        if text("image").is_empty() {
            causes.push(Cause::required(format!("{field}.image"), ""));
        }
        let pull = container.get("imagePullPolicy").cloned().unwrap_or_default();
        let known = ["Always", "IfNotPresent", "Never"];
        if !pull.is_null() && !known.iter().any(|known| pull == *known) {
            causes.push(Cause::unsupported(format!("{field}.imagePullPolicy"), &pull, &known));
        }
        for kind in ["requests", "limits"] {
            let quantities = at(container, &format!("/resources/{kind}")).and_then(Value::as_object);
            for (resource, quantity) in quantities.into_iter().flatten() {
                let text = quantity.as_str().map_or_else(|| quantity.to_string(), str::to_owned);
                if crate::quantity::parse(&text).is_none() {
                    let detail = "quantities must match the regular expression \
                        '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
                    let field = format!("{field}.resources.{kind}[{resource}]");
                    causes.push(Cause::invalid(field, quantity, detail));
                }
            }
        }
    }
}

/// The template of a Job is fixed. While the Job is suspended and none of its pods is left, only what says where its pods run
/// and how much they ask for may change; its controller takes `startTime` away by then.
fn job_template_update(old: &Value, new: &Value) -> Option<Cause> {
    let is_stopped = at(old, "/spec/suspend") == Some(&json!(true))
        && at(old, "/status/startTime").is_none()
        && at(old, "/status/active").and_then(Value::as_i64).unwrap_or_default() == 0;
    let template = |job: &Value| at(job, "/spec/template").cloned().unwrap_or_default();
    let fixed = |job: &Value| if is_stopped { unscheduled(template(job)) } else { template(job) };
    (fixed(old) != fixed(new)).then(|| Cause::invalid("spec.template", &template(new), "field is immutable"))
}

/// A template without its scheduling directives and resources.
fn unscheduled(mut template: Value) -> Value {
    fn remove(object: Option<&mut Value>, fields: &[&str]) {
        if let Some(object) = object.and_then(Value::as_object_mut) {
            object.retain(|field, _| !fields.contains(&field.as_str()));
        }
    }
    remove(template.get_mut("metadata"), &["labels", "annotations"]);
    if let Some(spec) = template.get_mut("spec") {
        remove(spec.get_mut("affinity"), &["nodeAffinity"]);
        for list in ["containers", "initContainers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                remove(Some(container), &["resources"]);
            }
        }
        remove(Some(spec), &["nodeSelector", "tolerations", "schedulingGates"]);
    }
    let is_empty = |value: Option<&Value>| value == Some(&json!({}));
    if is_empty(template.get("metadata")) {
        remove(Some(&mut template), &["metadata"]);
    }
    if is_empty(at(&template, "/spec/affinity")) {
        remove(template.get_mut("spec"), &["affinity"]);
    }
    template
}

/// Only images, the deadline, added tolerations, and a few others may change in a pod's spec.
fn pod_update(old: &Value, new: &Value) -> Option<Cause> {
    let stripped = |pod: &Value| {
        let mut spec = pod.get("spec").cloned().unwrap_or_default();
        for list in ["containers", "initContainers", "ephemeralContainers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(container) = container.as_object_mut() {
                    container.remove("image");
                    container.remove("resources");
                }
            }
        }
        if let Some(spec) = spec.as_object_mut() {
            for field in
                ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"]
            {
                spec.remove(field);
            }
        }
        spec
    };
    (stripped(old) != stripped(new)).then(|| {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,\
            `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
            tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        Cause::forbidden("spec", detail)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(suspend: bool, status: Value, template: Value) -> Value {
        json!({"spec": {"suspend": suspend, "template": template}, "status": status})
    }

    #[test]
    fn a_suspended_job_lets_its_scheduling_and_resources_be_changed_and_nothing_else() {
        let template = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
        let allows = |suspended: bool, status: Value, new: &Value| {
            let old = job(suspended, status.clone(), template.clone());
            job_template_update(&old, &job(false, status, new.clone())).is_none()
        };
        let mut moved = template.clone();
        moved["metadata"] = json!({"labels": {"a": "b"}, "annotations": {"a": "b"}});
        moved["spec"]["nodeSelector"] = json!({"zone": "a"});
        moved["spec"]["affinity"] = json!({"nodeAffinity": {}});
        moved["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
        moved["spec"]["schedulingGates"] = json!([{"name": "g"}]);
        moved["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
        assert!(allows(true, json!({}), &moved));
        assert!(!allows(false, json!({}), &moved), "it may have pods");
        assert!(
            !allows(true, json!({"startTime": "2026-01-01T00:00:00Z"}), &moved),
            "it has not stopped yet"
        );
        assert!(!allows(true, json!({"active": 1}), &moved));
        let mut image = template.clone();
        image["spec"]["containers"][0]["image"] = json!("j");
        assert!(!allows(true, json!({}), &image));
        let mut spread = template.clone();
        spread["spec"]["affinity"] = json!({"podAffinity": {}});
        assert!(!allows(true, json!({}), &spread));
        assert!(allows(false, json!({}), &template));
    }
}
