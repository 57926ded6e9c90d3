//! Custom resource definitions become established.

use std::time::Duration;

use serde_json::{Value, json};

use super::queue::{Item, Queue};
use super::view::View;
use super::{Controller, Seen, set_condition};
use crate::api::Api;
use crate::error::ApiError;
use crate::store::EventKind;
use crate::verbs::Part;

const TABLE: &str = "apiextensions.k8s.io/customresourcedefinitions";

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
        let row = api.row("apiextensions.k8s.io", "customresourcedefinitions")?;
        let time = api.time();
        api.modify(&row, &item.key, Part::Status, self.name(), |object| {
            let spec = object["spec"].clone();
            let stored: Vec<Value> = spec["versions"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|version| version.get("storage") == Some(&json!(true)))
                .filter_map(|version| version.get("name").cloned())
                .collect();
            let status = &mut object["status"];
            let named = |kind: &str, reason: &str, message: &str| {
                json!({"type": kind, "status": "True", "reason": reason, "message": message})
            };
            set_condition(status, named("NamesAccepted", "NoConflicts", "no conflicts found"), &time);
            set_condition(status, named("Established", "InitialNamesAccepted", "the initial names have been accepted"), &time);
            status["acceptedNames"] = spec["names"].clone();
            let mut versions = status["storedVersions"].as_array().cloned().unwrap_or_default();
            for version in stored {
                if !versions.contains(&version) {
                    versions.push(version);
                }
            }
            status["storedVersions"] = Value::Array(versions);
        })?;
        Ok(None)
    }
}
