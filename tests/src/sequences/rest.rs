//! How objects are once nothing happens any more.

use super::fields::node_role;
use super::history::Kind;
use regex::Regex;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// A generated name: a hash of ten letters or a suffix of five at most, after a known beginning.
static GENERATED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b(web|budgeted|lost|retry|hopeless|many)(-[a-z0-9]{5,10})+\b").ok());

/// Fields that say when, where, or in which store.
const LEFT_OUT: &[&str] = &[
    "lastTransitionTime",
    "lastUpdateTime",
    "lastHeartbeatTime",
    "lastProbeTime",
    "startTime",
    "completionTime",
    "hostIP",
    "hostIPs",
    "podIP",
    "podIPs",
    "startedAt",
    "finishedAt",
    "containerID",
    "image",
    "imageID",
    "allocatedResources",
    "resources",
    "user",
    "volumeMounts",
    "nodeInfo",
    "images",
    "addresses",
    "capacity",
    "allocatable",
    "daemonEndpoints",
    "runtimeHandlers",
    "features",
    "volumesInUse",
    "volumesAttached",
    "disruptedPods",
    "declaredFeatures",
];

/// An object without what differs from run to run.
pub(super) fn at_rest(kind: Kind, object: &Value, nodes: &[String; 2]) -> Value {
    let mut out = Map::new();
    out.insert("status".to_owned(), clean(&object["status"], nodes));
    let metadata = &object["metadata"];
    for field in ["generation", "finalizers", "deletionGracePeriodSeconds"] {
        let node_generation = kind == Kind::Node && field == "generation";
        if let Some(value) = metadata.get(field).filter(|_| !node_generation) {
            out.insert(field.to_owned(), value.clone());
        }
    }
    match kind {
        Kind::Deployment | Kind::ReplicaSet => {
            out.insert("wanted".to_owned(), object["spec"]["replicas"].clone());
            let all = metadata.get("annotations").and_then(Value::as_object).into_iter().flatten();
            let own = all.filter(|(key, _)| key.starts_with("deployment.kubernetes.io/"));
            out.insert(
                "annotations".to_owned(),
                own.map(|(key, value)| (key.clone(), value.clone())).collect(),
            );
        }
        Kind::Pod => {
            out.insert("node".to_owned(), json!(node_role(object.pointer("/spec/nodeName"), nodes)));
        }
        Kind::Node => {
            for field in ["unschedulable", "taints"] {
                if let Some(value) = object["spec"].get(field) {
                    out.insert(field.to_owned(), clean(value, nodes));
                }
            }
        }
        Kind::Job | Kind::Budget => {}
    }
    Value::Object(out)
}

fn clean(value: &Value, nodes: &[String; 2]) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, value)| {
                !LEFT_OUT.contains(&name.as_str()) && *name != "timeAdded" && !value.is_null()
            })
            .map(|(name, value)| (name.clone(), clean(value, nodes)))
            .collect(),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| clean(item, nodes)).collect();
            // The order of conditions and taints says nothing.
            if items.iter().all(Value::is_object) {
                items.sort_by_key(ToString::to_string);
                let named = |item: &Value| item["type"].as_str().map(str::to_owned);
                if !items.is_empty() && items.iter().all(|item| named(item).is_some()) {
                    return items.iter().filter_map(|item| Some((named(item)?, item.clone()))).collect();
                }
            }
            Value::Array(items)
        }
        Value::String(text) => {
            let mut text = text.clone();
            for (index, node) in nodes.iter().enumerate() {
                text = text.replace(node.as_str(), &format!("node {}", index + 1));
            }
            let replaced = GENERATED.as_ref().map(|name| name.replace_all(&text, "$1-…").into_owned());
            Value::String(replaced.unwrap_or(text))
        }
        other => other.clone(),
    }
}
