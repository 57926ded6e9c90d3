//! ResourceQuotas: what the objects of a namespace may ask for together.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::name_of;
use crate::api::Api;
use crate::error::ApiError;
use crate::quantity;
use crate::registry::Resource;
use crate::store::at;

/// What a quota counts of one pod, under its own words (`requests.cpu`, `pods`); what nobody says is not there.
fn counted(hard: &str, pod: &Value) -> Option<i128> {
    let (part, resource) = match hard {
        "pods" | "count/pods" => return Some(1000),
        "cpu" | "memory" => ("requests", hard),
        _ => hard.split_once('.').filter(|(part, _)| matches!(*part, "requests" | "limits"))?,
    };
    crate::cluster::pod_amounts(pod, part).get(resource).copied()
}

/// What words about one storage class have in common.
const OF_STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";

/// Whether a quota's word is about pods.
fn about_pods(hard: &str) -> bool {
    let about_storage = hard == "requests.storage" || hard.contains(OF_STORAGE_CLASS);
    !about_storage
        && (matches!(hard, "pods" | "count/pods" | "cpu" | "memory")
            || hard.starts_with("requests.")
            || hard.starts_with("limits."))
}

/// Whether a pod must say how much it asks for where a quota has this word: CPU and memory alone, as in Kubernetes.
fn is_required(word: &str) -> bool {
    matches!(word.split_once('.').map_or(word, |(_, resource)| resource), "cpu" | "memory")
}

/// Group and resource of the objects that a word is about, if it is not about pods.
fn subject(hard: &str) -> (&str, &str) {
    if hard == "requests.storage" || hard.contains(OF_STORAGE_CLASS) {
        return ("", "persistentvolumeclaims");
    }
    if hard.starts_with("services.") {
        return ("", "services");
    }
    let name = hard.strip_prefix("count/").unwrap_or(hard);
    name.split_once('.').map_or(("", name), |(plural, group)| (group, plural))
}

/// What one object, which is no pod, takes of a word that is about its kind.
fn taken(hard: &str, object: &Value) -> i128 {
    let text = |pointer: &str| at(object, pointer).and_then(Value::as_str).unwrap_or_default();
    let (class, word) = hard.split_once(OF_STORAGE_CLASS).unwrap_or(("", hard));
    if !class.is_empty() && text("/spec/storageClassName") != class {
        return 0;
    }
    let is_balanced = text("/spec/type") == "LoadBalancer";
    match word {
        "requests.storage" => quantity::parse(text("/spec/resources/requests/storage")).unwrap_or(0),
        "services.loadbalancers" => i128::from(is_balanced) * 1000,
        "services.nodeports" => {
            let allocates = at(object, "/spec/allocateLoadBalancerNodePorts") != Some(&json!(false));
            let has_ports = text("/spec/type") == "NodePort" || is_balanced && allocates;
            let ports = at(object, "/spec/ports").and_then(Value::as_array).map_or(0, Vec::len);
            if has_ports { 1000 * i128::try_from(ports).unwrap_or_default() } else { 0 }
        }
        _ => 1000,
    }
}

/// What a namespace uses of each word of a quota.
fn usage(api: &Api, namespace: &str, quota: &Value) -> BTreeMap<String, i128> {
    let hard = quota["spec"]["hard"].as_object().cloned().unwrap_or_default();
    let mut used: BTreeMap<String, i128> = hard.keys().map(|word| (word.clone(), 0)).collect();
    for pod in api.store.scan("/pods", Some(namespace), None) {
        let pod = pod.value();
        if matches!(at(&pod, "/status/phase").and_then(Value::as_str), Some("Succeeded" | "Failed")) {
            continue;
        }
        for (word, sum) in used.iter_mut().filter(|(word, _)| about_pods(word)) {
            *sum += counted(word, &pod).unwrap_or(0);
        }
    }
    for (word, sum) in used.iter_mut().filter(|(word, _)| !about_pods(word)) {
        let (group, plural) = subject(word);
        let table = format!("{group}/{plural}");
        let there = api.store.scan(&table, Some(namespace), None);
        *sum = there.map(|object| taken(word, &object.value())).sum();
    }
    used
}

/// Refuses what would go beyond a quota of its namespace.
pub(super) fn check(api: &Api, row: &Resource, object: &Value) -> Result<(), ApiError> {
    let Some(namespace) = at(object, "/metadata/namespace").and_then(Value::as_str) else { return Ok(()) };
    for quota in api.store.scan("/resourcequotas", Some(namespace), None) {
        let quota = quota.value();
        let name = at(&quota, "/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let Some(hard) = quota["spec"]["hard"].as_object() else { continue };
        let is_pod = row.is("", "pods");
        let concerned: Vec<_> = hard
            .iter()
            .filter(|(word, _)| {
                if is_pod {
                    about_pods(word)
                } else {
                    !about_pods(word) && subject(word) == (row.group.as_str(), row.plural.as_str())
                }
            })
            .collect();
        if concerned.is_empty() {
            continue;
        }
        let used = usage(api, namespace, &quota);
        let (mut missing, mut beyond) = (Vec::new(), Vec::new());
        for (word, limit) in concerned {
            let asked = if is_pod { counted(word, object) } else { Some(taken(word, object)) };
            // Who takes nothing takes nothing too much.
            if !is_pod && asked == Some(0) {
                continue;
            }
            let Some(asked) = asked else {
                if is_required(word) {
                    missing.push(word.as_str());
                }
                continue;
            };
            let limit_text = limit.as_str().map_or_else(|| limit.to_string(), str::to_owned);
            let used = used.get(word).copied().unwrap_or(0);
            if quantity::parse(&limit_text).is_some_and(|limit| used + asked > limit) {
                beyond.push((word, quantity::show(word, asked), quantity::show(word, used), limit_text));
            }
        }
        let about = row.about(name_of(object));
        if !missing.is_empty() {
            let why = format!("failed quota: {name}: must specify {}", missing.join(","));
            return Err(ApiError::forbidden(about, &why));
        }
        if !beyond.is_empty() {
            let join =
                |values: [String; 3], (word, asked, used, limit): &(&String, String, String, String)| {
                    let comma = if values[0].is_empty() { "" } else { "," };
                    let [requested, taken, limited] = values;
                    [
                        format!("{requested}{comma}{word}={asked}"),
                        format!("{taken}{comma}{word}={used}"),
                        format!("{limited}{comma}{word}={limit}"),
                    ]
                };
            let [requested, taken, limited] = beyond.iter().fold(Default::default(), join);
            let why =
                format!("exceeded quota: {name}, requested: {requested}, used: {taken}, limited: {limited}");
            return Err(ApiError::forbidden(about, &why));
        }
    }
    Ok(())
}

/// The status of a quota.
pub(crate) fn status(api: &Api, namespace: &str, quota: &Value) -> Value {
    let used = usage(api, namespace, quota);
    let used: Value =
        used.iter().map(|(word, sum)| (word.clone(), json!(quantity::show(word, *sum)))).collect();
    json!({"hard": quota["spec"]["hard"], "used": used})
}
