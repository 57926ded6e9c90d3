//! The fields of an object whose sequence is compared.

use super::history::{Kind, Life};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What is not there.
const NOTHING: &str = "-";

/// Between two values of a sequence.
pub(super) const ARROW: &str = " → ";

/// The sequence of each field over an object's life in a step.
pub(super) fn sequences(life: &Life, nodes: &[String; 2]) -> Value {
    let states: Vec<BTreeMap<String, String>> =
        life.all().map(|state| fields(life.kind, state, nodes)).collect();
    let names: BTreeSet<&String> = states.iter().flat_map(BTreeMap::keys).collect();
    let mut out = Map::new();
    for name in names {
        let mut values: Vec<String> = Vec::new();
        for state in &states {
            let value = state.get(name).map_or(NOTHING, String::as_str);
            // A busy kubelet tells of a pod only once its network is there.
            if name == "PodReadyToStartContainers" && value == "False" && values.as_slice() == [NOTHING] {
                continue;
            }
            if values.last().is_none_or(|last| last != value) {
                values.push(value.to_owned());
            }
        }
        if let Some(counts) = as_counts(&values) {
            values = turning_points(&counts).iter().map(ToString::to_string).collect();
        }
        out.insert(name.clone(), json!(values.join(ARROW)));
    }
    Value::Object(out)
}

fn fields(kind: Kind, object: &Value, nodes: &[String; 2]) -> BTreeMap<String, String> {
    let mut out = conditions(object);
    let mut add = |name: &str, value: String| out.insert(name.to_owned(), value);
    let count = |pointer: &str| format!("#{}", object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0));
    match kind {
        Kind::Deployment => {
            add("revision", annotation(object, "deployment.kubernetes.io/revision"));
            add("generation", shown(object.pointer("/metadata/generation")));
        }
        Kind::ReplicaSet => {
            add("wanted", shown(object.pointer("/spec/replicas")));
            add("revision", annotation(object, "deployment.kubernetes.io/revision"));
            for field in ["readyReplicas", "availableReplicas"] {
                add(field, count(&format!("/status/{field}")));
            }
        }
        Kind::Pod => {
            add("phase", shown(object.pointer("/status/phase")));
            add("node", node_role(object.pointer("/spec/nodeName"), nodes));
            add("deleting", object.pointer("/metadata/deletionTimestamp").is_some().to_string());
            add("container", container(object));
            add("finalizers", shown(object.pointer("/metadata/finalizers")));
        }
        Kind::Job => {
            for field in ["succeeded", "failed"] {
                add(field, count(&format!("/status/{field}")));
            }
        }
        Kind::Budget => {
            for field in ["currentHealthy", "desiredHealthy"] {
                add(field, count(&format!("/status/{field}")));
            }
        }
        Kind::Node => {
            add("unschedulable", shown(object.pointer("/spec/unschedulable")));
            for taint in object.pointer("/spec/taints").and_then(Value::as_array).into_iter().flatten() {
                let text = |field: &str| taint[field].as_str().unwrap_or_default();
                add(&format!("taint {}:{}", text("key"), text("effect")), "there".to_owned());
            }
        }
    }
    out
}

fn conditions(object: &Value) -> BTreeMap<String, String> {
    let list = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    list.map(|condition| {
        let said = format!("{} {}", text(condition, "status"), text(condition, "reason"));
        (text(condition, "type"), said.trim_end().to_owned())
    })
    .collect()
}

fn container(pod: &Value) -> String {
    let Some(state) = pod.pointer("/status/containerStatuses/0/state").and_then(Value::as_object) else {
        return NOTHING.to_owned();
    };
    let Some((name, about)) = state.iter().next() else { return NOTHING.to_owned() };
    let mut said = name.clone();
    for field in ["reason", "exitCode"] {
        if let Some(value) = about.get(field) {
            said = format!("{said} {}", shown(Some(value)));
        }
    }
    said
}

fn annotation(object: &Value, key: &str) -> String {
    shown(object.pointer("/metadata/annotations").and_then(|all| all.get(key)))
}

/// The number of a node, not its name.
pub(super) fn node_role(name: Option<&Value>, nodes: &[String; 2]) -> String {
    let found = name.and_then(Value::as_str).and_then(|name| nodes.iter().position(|node| node == name));
    found.map_or_else(|| NOTHING.to_owned(), |index| format!("node {}", index + 1))
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => NOTHING.to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn as_counts(values: &[String]) -> Option<Vec<i64>> {
    values
        .iter()
        .map(|value| if value == NOTHING { Some(0) } else { value.strip_prefix('#')?.parse().ok() })
        .collect::<Option<Vec<i64>>>()
        .filter(|_| values.iter().any(|value| value.starts_with('#')))
}

/// The ends, and where it went from up to down or back.
fn turning_points(values: &[i64]) -> Vec<i64> {
    let mut out: Vec<i64> = Vec::new();
    for value in values {
        match out.as_slice() {
            [.., last] if last == value => {}
            [.., before, last] if (before < last) == (last < value) => {
                out.pop();
                out.push(*value);
            }
            _ => out.push(*value),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turning_points_do_not_depend_on_the_steps_between() {
        assert_eq!(turning_points(&[0, 1, 2, 3, 2, 1, 1, 2]), [0, 3, 1, 2]);
        assert_eq!(turning_points(&[0, 3, 1, 2]), [0, 3, 1, 2]);
        assert_eq!(turning_points(&[4]), [4]);
    }
}
