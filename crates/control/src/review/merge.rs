//! An object as `kubectl apply` of a manifest would leave it.

use crate::copies::insert;
use crate::names::{ADOPT_ANNOTATION, ADOPTED_TEMPLATE_ANNOTATION, FIELD_MANAGER, WORKLOAD_ID_ANNOTATION};
use serde_json::{Map, Value};

/// Where `kubectl apply` keeps what it was given last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How a manifest takes effect on an object that exists.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Way {
    /// By three-way merge with what was applied last: the object that comes of it.
    Merged(Value),
    /// By server-side apply in the name of this field manager.
    ServerSide(String),
    /// The manifest replaces spec, labels and annotations: the object that comes of it.
    Replaced(Value),
}

/// Finds out how a manifest would be applied: as the object was applied before.
pub(super) fn way(live: &Value, manifest: &Value) -> Way {
    let last = live["metadata"]["annotations"][LAST_APPLIED].as_str();
    if let Some(last) = last.and_then(|text| serde_json::from_str::<Value>(text).ok()) {
        let mut merged = live.clone();
        remove(&mut merged, &last, manifest);
        merge(&mut merged, manifest);
        return Way::Merged(writable(merged, live));
    }
    match applier(live) {
        Some(manager) => Way::ServerSide(manager),
        None => {
            let mut replaced = live.clone();
            replaced["spec"] = manifest["spec"].clone();
            for field in ["labels", "annotations"] {
                if let Some(given) = manifest["metadata"].get(field) {
                    replaced["metadata"][field] = given.clone();
                }
            }
            keep_marks(&mut replaced, live);
            Way::Replaced(writable(replaced, live))
        }
    }
}

/// Keeps the annotations by which Portolan knows whose copies an object has, and which it is to take over: nobody who writes
/// the manifest knows them.
fn keep_marks(object: &mut Value, live: &Value) {
    for mark in [ADOPT_ANNOTATION, ADOPTED_TEMPLATE_ANNOTATION, WORKLOAD_ID_ANNOTATION] {
        let Some(value) = live["metadata"]["annotations"].get(mark) else { continue };
        if object["metadata"]["annotations"].get(mark).is_none() {
            insert(object, &["metadata", "annotations"], mark, value.clone());
        }
    }
}

/// The field manager that applied the object from the server's side: kubectl, or the only one there is.
fn applier(live: &Value) -> Option<String> {
    let fields = live["metadata"]["managedFields"].as_array().into_iter().flatten();
    let applied = fields.filter(|each| each["operation"] == "Apply" && each["subresource"].is_null());
    let names: Vec<&str> = applied.filter_map(|each| each["manager"].as_str()).collect();
    let users: Vec<&str> = names.into_iter().filter(|name| *name != FIELD_MANAGER).collect();
    match users.as_slice() {
        [only] => Some((*only).to_owned()),
        several => several.iter().find(|name| **name == "kubectl").map(|name| (*name).to_owned()),
    }
}

/// Takes away what was applied last and is not in the manifest any more.
fn remove(target: &mut Value, last: &Value, manifest: &Value) {
    let (Some(target), Some(last)) = (target.as_object_mut(), last.as_object()) else { return };
    for (name, before) in last {
        match manifest.get(name) {
            None => _ = target.remove(name),
            Some(now) => {
                if let Some(inner) = target.get_mut(name) {
                    remove(inner, before, now);
                }
            }
        }
    }
}

/// Puts in what the manifest says: objects field by field, everything else as a whole.
fn merge(target: &mut Value, manifest: &Value) {
    let Some(fields) = manifest.as_object() else {
        *target = manifest.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(target) = target.as_object_mut() else { return };
    for (name, value) in fields {
        match value {
            Value::Null => _ = target.remove(name),
            value => merge(target.entry(name.clone()).or_insert(Value::Null), value),
        }
    }
}

/// The object with the identity of the live one, and without what only the API server writes.
fn writable(mut object: Value, live: &Value) -> Value {
    for field in ["name", "namespace", "uid", "resourceVersion"] {
        object["metadata"][field] = live["metadata"][field].clone();
    }
    for part in ["managedFields", "creationTimestamp"] {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove(part);
        }
    }
    object["status"] = live["status"].clone();
    if object["status"].is_null()
        && let Some(object) = object.as_object_mut()
    {
        object.remove("status");
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn live(metadata: Value) -> Value {
        json!({"metadata": metadata, "spec": {"replicas": 5, "locations": ["a"], "numberOfLocations": 2}})
    }

    #[test]
    fn what_was_applied_last_and_is_not_given_any_more_goes() {
        let last = json!({"spec": {"locations": ["a"], "numberOfLocations": 2}}).to_string();
        let live = live(json!({"name": "web", "annotations": {LAST_APPLIED: last}}));
        let manifest = json!({"metadata": {"name": "web"}, "spec": {"locations": ["b"]}});
        let Way::Merged(merged) = way(&live, &manifest) else { panic!() };
        assert_eq!(
            merged["spec"],
            json!({"replicas": 5, "locations": ["b"]}),
            "an autoscaler keeps its replicas"
        );
    }

    #[test]
    fn who_applied_from_the_servers_side_does_so_again() {
        let entry = |manager: &str, operation: &str| json!({"manager": manager, "operation": operation});
        let of = |entries: Value| way(&live(json!({"managedFields": entries})), &json!({"spec": {}}));
        assert_eq!(
            of(json!([entry("gitops", "Apply"), entry("x", "Update")])),
            Way::ServerSide("gitops".into())
        );
        assert_eq!(
            of(json!([entry("a", "Apply"), entry("kubectl", "Apply")])),
            Way::ServerSide("kubectl".into())
        );
        assert!(matches!(of(json!([entry("a", "Apply"), entry("b", "Apply")])), Way::Replaced(_)));
    }

    #[test]
    fn without_either_the_manifest_is_the_whole_spec() {
        let Way::Replaced(replaced) = way(&live(json!({"name": "web"})), &json!({"spec": {"replicas": 1}}))
        else {
            panic!()
        };
        assert_eq!(replaced["spec"], json!({"replicas": 1}));
    }

    #[test]
    fn a_mark_to_adopt_stays_although_the_manifest_has_annotations_of_its_own() {
        let live = live(json!({"name": "web", "annotations": {ADOPT_ANNOTATION: "unmanaged", "old": "1"}}));
        let manifest = json!({"metadata": {"annotations": {"team": "a"}}, "spec": {}});
        let Way::Replaced(replaced) = way(&live, &manifest) else { panic!() };
        let annotations = &replaced["metadata"]["annotations"];
        assert_eq!(*annotations, json!({ADOPT_ANNOTATION: "unmanaged", "team": "a"}));
    }
}
