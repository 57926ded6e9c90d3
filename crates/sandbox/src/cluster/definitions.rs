//! Custom resource definitions become established, and take their objects with them when they go.

use std::time::Duration;

use serde_json::{Value, json};

use super::queue::{Item, Queue};
use super::view::View;
use super::{Controller, Seen, deleting, set_condition, text};
use crate::api::Api;
use crate::error::ApiError;
use crate::store::{EventKind, ObjectKey};
use crate::verbs::{DeleteOptions, Part};

const TABLE: &str = "apiextensions.k8s.io/customresourcedefinitions";
const CLEAN_UP: &str = "customresourcecleanup.apiextensions.k8s.io";
/// How long until objects that do not go are looked at again.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) struct Definitions;

impl Controller for Definitions {
    fn name(&self) -> &'static str {
        "kube-apiserver"
    }

    fn observe(&mut self, seen: &Seen, _: &View, queue: &mut Queue) {
        if &*seen.table == TABLE && seen.kind != EventKind::Deleted {
            queue.add(Item::new(TABLE, &seen.key));
        }
    }

    fn reconcile(&mut self, item: &Item, api: &mut Api, _: &View) -> Result<Option<Duration>, ApiError> {
        let Some(found) = api.store.get(TABLE, &item.key) else { return Ok(None) };
        let definition = found.value();
        if deleting(&definition) {
            return self.clean_up(&item.key, &definition, api);
        }
        let row = api.row("apiextensions.k8s.io", "customresourcedefinitions")?;
        let time = api.time();
        api.modify(&row, &item.key, Part::Main, self.name(), |object| set_finalizer(object, true))?;
        api.modify(&row, &item.key, Part::Status, self.name(), |object| establish(object, &time))?;
        Ok(None)
    }
}

impl Definitions {
    /// Deletes all objects of a definition; lets it go when there are none.
    fn clean_up(
        &self,
        key: &ObjectKey,
        definition: &Value,
        api: &mut Api,
    ) -> Result<Option<Duration>, ApiError> {
        let table = format!("{}/{}", text(definition, "/spec/group"), text(definition, "/spec/names/plural"));
        let keys: Vec<ObjectKey> =
            api.store.scan(&table, None, None).map(|object| object.key.clone()).collect();
        if let Some(row) = api.registry.of_table(&table) {
            for key in &keys {
                api.remove_object(&row, key, &DeleteOptions::default())?;
            }
        }
        if api.store.count(&table) > 0 {
            return Ok(Some(AGAIN));
        }
        let row = api.row("apiextensions.k8s.io", "customresourcedefinitions")?;
        api.modify(&row, key, Part::Main, self.name(), |object| set_finalizer(object, false))?;
        Ok(None)
    }
}

fn set_finalizer(object: &mut Value, wanted: bool) {
    let mut finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    finalizers.retain(|found| found.as_str() != Some(CLEAN_UP));
    if wanted {
        finalizers.push(json!(CLEAN_UP));
    }
    object["metadata"]["finalizers"] = Value::Array(finalizers);
}

fn establish(object: &mut Value, time: &Value) {
    let spec = object["spec"].clone();
    let stored = spec["versions"].as_array().into_iter().flatten();
    let stored = stored.filter(|version| version.get("storage") == Some(&json!(true)));
    let status = &mut object["status"];
    let named = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "reason": reason, "message": message});
    set_condition(status, named("NamesAccepted", "NoConflicts", "no conflicts found"), time);
    let message = "the initial names have been accepted";
    set_condition(status, named("Established", "InitialNamesAccepted", message), time);
    status["acceptedNames"] = spec["names"].clone();
    let mut versions = status["storedVersions"].as_array().cloned().unwrap_or_default();
    for version in stored.filter_map(|version| version.get("name")) {
        if !versions.contains(version) {
            versions.push(version.clone());
        }
    }
    status["storedVersions"] = Value::Array(versions);
}
