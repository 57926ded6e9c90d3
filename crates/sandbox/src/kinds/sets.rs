//! What is particular to StatefulSets and DaemonSets: defaults and rules, worded as the API server words them.

use serde_json::{Value, json};

use super::pod_defaults::{ensure, pod_spec};
use crate::error::Cause;
use crate::registry::Resource;
use crate::store::at;

/// Where a DaemonSet tells how often its template has changed.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Fills in what a StatefulSet leaves out.
pub(super) fn stateful_set_defaults(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    ensure(spec, "replicas", json!(1));
    ensure(spec, "podManagementPolicy", json!("OrderedReady"));
    ensure(spec, "revisionHistoryLimit", json!(10));
    ensure(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
    for field in ["whenDeleted", "whenScaled"] {
        ensure(&mut spec["persistentVolumeClaimRetentionPolicy"], field, json!("Retain"));
    }
    rolling_defaults(spec, &[("partition", 0)]);
    let claims = spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut);
    for claim in claims.into_iter().flatten() {
        ensure(claim, "apiVersion", json!("v1"));
        ensure(claim, "kind", json!("PersistentVolumeClaim"));
        ensure(claim, "status", json!({}));
        ensure(&mut claim["status"], "phase", json!("Pending"));
        if let Some(spec) = claim.get_mut("spec") {
            ensure(spec, "volumeMode", json!("Filesystem"));
        }
    }
    pod_spec(spec.pointer_mut("/template/spec"));
}

/// Fills in what a DaemonSet leaves out.
pub(super) fn daemon_set_defaults(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    ensure(spec, "revisionHistoryLimit", json!(10));
    rolling_defaults(spec, &[("maxUnavailable", 1), ("maxSurge", 0)]);
    pod_spec(spec.pointer_mut("/template/spec"));
}

fn rolling_defaults(spec: &mut Value, fields: &[(&str, i64)]) {
    ensure(spec, "updateStrategy", json!({}));
    let strategy = &mut spec["updateStrategy"];
    ensure(strategy, "type", json!("RollingUpdate"));
    if strategy.get("type") == Some(&json!("RollingUpdate")) {
        ensure(strategy, "rollingUpdate", json!({}));
        for (field, value) in fields {
            ensure(&mut strategy["rollingUpdate"], field, json!(value));
        }
    }
}

/// Drops what Kubernetes keeps only if a feature is on that is off by default (`MaxUnavailableStatefulSet`).
pub(super) fn drop_disabled(object: &mut Value) {
    let rolling = object.pointer_mut("/spec/updateStrategy/rollingUpdate").and_then(Value::as_object_mut);
    rolling.map(|rolling| rolling.remove("maxUnavailable"));
}

/// Gives a new DaemonSet its first template generation and its status.
pub(super) fn prepare_daemon_set(object: &mut Value) {
    set_template_generation(object, 1);
    object["status"] = json!({
        "currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0,
    });
}

/// Counts the templates of a DaemonSet; nobody else sets that number.
pub(crate) fn count_template(row: &Resource, old: &Value, new: &mut Value) {
    if !row.is("apps", "daemonsets") {
        return;
    }
    let before = old.pointer("/metadata/annotations").and_then(|all| all.get(TEMPLATE_GENERATION)?.as_str());
    let before: i64 = before.and_then(|text| text.parse().ok()).unwrap_or(1);
    let changed = at(old, "/spec/template") != at(new, "/spec/template");
    set_template_generation(new, before + i64::from(changed));
}

fn set_template_generation(object: &mut Value, generation: i64) {
    if let Some(metadata) = object.get_mut("metadata") {
        if metadata.get("annotations").is_none_or(Value::is_null) {
            metadata["annotations"] = json!({});
        }
        metadata["annotations"][TEMPLATE_GENERATION] = json!(generation.to_string());
    }
}

/// What is wrong with a StatefulSet, beyond what holds for all workloads.
pub(super) fn validate_stateful_set(object: &Value, causes: &mut Vec<Cause>) {
    let value = |pointer: &str| at(object, pointer).cloned().unwrap_or_default();
    let policy = value("/spec/podManagementPolicy");
    if policy != "OrderedReady" && policy != "Parallel" {
        let told = "must be 'OrderedReady' or 'Parallel'";
        causes.push(Cause::invalid("spec.podManagementPolicy", &policy, told));
    }
    let rolling = value("/spec/updateStrategy/rollingUpdate");
    match value("/spec/updateStrategy/type").as_str() {
        Some("RollingUpdate") => {
            not_negative(object, "spec.updateStrategy.rollingUpdate.partition", causes);
        }
        Some("OnDelete") if !rolling.is_null() => {
            causes.push(Cause {
                reason: "FieldValueInvalid",
                field: "spec.updateStrategy.rollingUpdate".to_owned(),
                message: format!(
                    "Invalid value: {{\"Partition\":{},\"MaxUnavailable\":null}}: only allowed for updateStrategy \
                     'RollingUpdate'",
                    rolling["partition"]
                ),
            });
        }
        Some("OnDelete") => {}
        _ => causes.push(Cause {
            reason: "FieldValueInvalid",
            field: "spec.updateStrategy".to_owned(),
            message: format!("Invalid value: {}: must be 'RollingUpdate' or 'OnDelete'", strategy(object)),
        }),
    }
    for field in ["whenDeleted", "whenScaled"] {
        let policy = value(&format!("/spec/persistentVolumeClaimRetentionPolicy/{field}"));
        if policy != "Retain" && policy != "Delete" {
            let field = format!("spec.persistentVolumeClaimRetentionPolicy.{field}");
            causes.push(Cause::unsupported(field, &policy, &["Retain", "Delete"]));
        }
    }
    for field in ["spec.minReadySeconds", "spec.ordinals.start"] {
        not_negative(object, field, causes);
    }
    no_deadline(object, "StatefulSet", causes);
}

/// The same for a DaemonSet.
pub(super) fn validate_daemon_set(object: &Value, causes: &mut Vec<Cause>) {
    not_negative(object, "spec.minReadySeconds", causes);
    no_deadline(object, "DaemonSet", causes);
    let field = "spec.updateStrategy.rollingUpdate";
    let value = |name: &str| {
        at(object, &format!("/spec/updateStrategy/rollingUpdate/{name}")).cloned().unwrap_or_default()
    };
    let is_set = |value: &Value| !(value.is_null() || *value == json!(0) || *value == json!("0%"));
    match at(object, "/spec/updateStrategy/type").and_then(Value::as_str) {
        Some("RollingUpdate") => {
            let surge = value("maxSurge");
            match (is_set(&value("maxUnavailable")), is_set(&surge)) {
                (true, true) => {
                    let told = "may not be set when maxUnavailable is non-zero";
                    causes.push(Cause::invalid(format!("{field}.maxSurge"), &surge, told));
                }
                (false, false) => {
                    let told = "cannot be 0 when maxSurge is 0";
                    causes.push(Cause::required(format!("{field}.maxUnavailable"), told));
                }
                (true, false) | (false, true) => {}
            }
        }
        Some("OnDelete") => {}
        _ => causes.push(Cause {
            reason: "FieldValueNotSupported",
            field: "spec.updateStrategy".to_owned(),
            message: format!(
                "Unsupported value: {}: supported values: \"RollingUpdate\", \"OnDelete\"",
                strategy(object)
            ),
        }),
    }
}

/// An update strategy of an unknown type, as Go prints it.
fn strategy(object: &Value) -> String {
    let kind = at(object, "/spec/updateStrategy/type").cloned().unwrap_or_default();
    format!("{{\"Type\":{kind},\"RollingUpdate\":null}}")
}

fn not_negative(object: &Value, field: &str, causes: &mut Vec<Cause>) {
    let value = at(object, &format!("/{}", field.replace('.', "/")));
    if let Some(value) = value.filter(|value| value.as_i64().is_some_and(|number| number < 0)) {
        causes.push(Cause::invalid(field, value, "must be greater than or equal to 0"));
    }
}

fn no_deadline(object: &Value, kind: &str, causes: &mut Vec<Cause>) {
    if at(object, "/spec/template/spec/activeDeadlineSeconds").is_some() {
        let told = format!("activeDeadlineSeconds in {kind} is not Supported");
        causes.push(Cause::forbidden("spec.template.spec.activeDeadlineSeconds", &told));
    }
}
