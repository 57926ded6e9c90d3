//! LimitRanges: what containers get that ask for nothing, and what they and their pods may ask for.

use serde_json::{Value, json};

use super::name_of;
use crate::api::Api;
use crate::error::ApiError;
use crate::quantity;
use crate::registry::Resource;
use crate::store::at;

const NOTE: &str = "kubernetes.io/limit-ranger";

fn limits(api: &Api, pod: &Value, kind: &str) -> Vec<Value> {
    let namespace = at(pod, "/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
    let ranges = api.store.scan("/limitranges", Some(namespace), None);
    let of = |range: Value| range["spec"]["limits"].as_array().cloned().unwrap_or_default();
    let all = ranges.map(|range| Value::clone(&range.value())).flat_map(of);
    all.filter(|limit| limit["type"] == kind).collect()
}

/// Gives each container what it does not say itself.
pub(super) fn set_defaults(api: &Api, pod: &mut Value) {
    let mut notes = Vec::new();
    for limit in limits(api, pod, "Container") {
        for (list, word) in [("containers", "container"), ("initContainers", "init container")] {
            let containers = pod.pointer_mut(&format!("/spec/{list}")).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                for (default, part, called) in
                    [("defaultRequest", "requests", "request"), ("default", "limits", "limit")]
                {
                    let set = fill(container, part, &limit[default]);
                    if !set.is_empty() {
                        let name = container["name"].as_str().unwrap_or_default();
                        notes.push(format!("{} {called} for {word} {name}", set.join(", ")));
                    }
                }
            }
        }
    }
    if !notes.is_empty() {
        let note = format!("LimitRanger plugin set: {}", notes.join("; "));
        if !pod["metadata"]["annotations"].is_object() {
            pod["metadata"]["annotations"] = json!({});
        }
        pod["metadata"]["annotations"][NOTE] = json!(note);
    }
}

/// Sets what is missing; answers the names of what was.
fn fill(container: &mut Value, part: &str, defaults: &Value) -> Vec<String> {
    let mut set = Vec::new();
    for (resource, amount) in defaults.as_object().into_iter().flatten() {
        if at(container, &format!("/resources/{part}/{resource}")).is_none() {
            if !container["resources"].is_object() {
                container["resources"] = json!({});
            }
            if !container["resources"][part].is_object() {
                container["resources"][part] = json!({});
            }
            container["resources"][part][resource] = amount.clone();
            set.push(resource.clone());
        }
    }
    set
}

/// Refuses a pod that asks for less or more than a LimitRange allows.
pub(super) fn check(api: &Api, row: &Resource, pod: &Value) -> Result<(), ApiError> {
    let mut wrong = Vec::new();
    for limit in limits(api, pod, "Container") {
        for list in ["containers", "initContainers"] {
            let containers = at(pod, &format!("/spec/{list}")).and_then(Value::as_array);
            for container in containers.into_iter().flatten() {
                bounds(&limit, "Container", &container["resources"], &mut wrong);
            }
        }
    }
    for limit in limits(api, pod, "Pod") {
        let total = |part: &str| crate::cluster::pod_amounts(pod, part);
        let shown = |part: &str| -> Value {
            let amounts = total(part).into_iter().filter(|(name, _)| &**name != "pods");
            amounts.map(|(name, amount)| (name.to_string(), json!(format!("{amount}m")))).collect()
        };
        let resources = json!({"requests": shown("requests"), "limits": shown("limits")});
        bounds(&limit, "Pod", &resources, &mut wrong);
    }
    let why = match wrong.as_slice() {
        [] => return Ok(()),
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    Err(ApiError::forbidden(row.about(name_of(pod)), &why))
}

fn bounds(limit: &Value, of: &str, resources: &Value, wrong: &mut Vec<String>) {
    let read = |value: &Value| value.as_str().and_then(quantity::parse);
    for (resource, least) in limit["min"].as_object().into_iter().flatten() {
        let least_text = least.as_str().unwrap_or_default();
        match at(resources, &format!("/requests/{resource}")) {
            None => {
                wrong.push(format!(
                    "minimum {resource} usage per {of} is {least_text}.  No request is specified"
                ));
            }
            Some(asked) if read(asked) < read(least) => wrong.push(format!(
                "minimum {resource} usage per {of} is {least_text}, but request is {}",
                asked.as_str().unwrap_or_default()
            )),
            Some(_) => {}
        }
    }
    for (resource, most) in limit["max"].as_object().into_iter().flatten() {
        let most_text = most.as_str().unwrap_or_default();
        match at(resources, &format!("/limits/{resource}")) {
            None => {
                wrong.push(format!(
                    "maximum {resource} usage per {of} is {most_text}.  No limit is specified"
                ));
            }
            Some(asked) if read(asked) > read(most) => wrong.push(format!(
                "maximum {resource} usage per {of} is {most_text}, but limit is {}",
                asked.as_str().unwrap_or_default()
            )),
            Some(_) => {}
        }
    }
}
