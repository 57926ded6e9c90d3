//! Pod templates with what decides where and how pods run in a simulation, and nothing that may be confidential.

use serde_json::{Map, Value};

/// The fields of a pod's spec that are kept.
const POD: [&str; 9] = [
    "affinity",
    "containers",
    "initContainers",
    "nodeSelector",
    "overhead",
    "restartPolicy",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
];

/// The fields of a container that are kept.
const CONTAINER: [&str; 5] = ["name", "image", "ports", "resources", "restartPolicy"];

/// The annotations that say how pods behave in a simulation.
const BEHAVIOUR: &str = "sandbox.portolan.dev/";

/// A template without environment, commands, volumes and all else that simulated nodes make no use of.
pub(super) fn reduced(template: &Value) -> Value {
    let mut out = Map::new();
    let mut metadata = Map::new();
    if let Some(labels) = template.pointer("/metadata/labels") {
        metadata.insert("labels".to_owned(), labels.clone());
    }
    let annotations = behaviour(template.pointer("/metadata/annotations"));
    if !annotations.is_empty() {
        metadata.insert("annotations".to_owned(), Value::Object(annotations));
    }
    out.insert("metadata".to_owned(), Value::Object(metadata));
    let mut spec = kept(&template["spec"], &POD);
    for list in ["containers", "initContainers"] {
        if let Some(containers) = spec.get_mut(list).and_then(Value::as_array_mut) {
            containers.iter_mut().for_each(|each| *each = Value::Object(kept(each, &CONTAINER)));
        }
    }
    out.insert("spec".to_owned(), Value::Object(spec));
    Value::Object(out)
}

/// The annotations that say how pods behave in a simulation.
pub(super) fn behaviour(annotations: Option<&Value>) -> Map<String, Value> {
    let all = annotations.and_then(Value::as_object).into_iter().flatten();
    all.filter(|(key, _)| key.starts_with(BEHAVIOUR))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn kept(object: &Value, fields: &[&str]) -> Map<String, Value> {
    let all = object.as_object().into_iter().flatten();
    all.filter(|(key, _)| fields.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
