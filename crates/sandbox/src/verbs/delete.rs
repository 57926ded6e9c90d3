//! Delete and deletecollection.

use std::sync::Arc;

use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{convert, metadata};
use crate::api::{Answer, Api, Writer};
use crate::error::{About, ApiError};
use crate::registry::Resource;
use crate::store::{ObjectKey, Selector, at};

/// What becomes of an object's dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// The conditions and manner of a deletion.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) propagation_policy: Option<Propagation>,
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) preconditions: Option<Preconditions>,
    pub(crate) dry_run: Vec<String>,
}

/// What must hold for a deletion to happen.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preconditions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

/// Namespaces that every cluster needs.
const IMMORTAL: &[&str] = &["default", "kube-public", "kube-system"];
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

impl Api {
    /// Deletes an object, or marks it; answers a Status or the object.
    pub(crate) fn delete(
        &mut self,
        row: &Arc<Resource>,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
        writer: &Writer,
    ) -> Result<Answer, ApiError> {
        let live = self.live(row, if row.namespaced { namespace } else { "" }, name)?;
        let old = live.value();
        if row.is("", "namespaces") && IMMORTAL.contains(&name) {
            return Err(ApiError::forbidden(row.about(name), "this namespace may not be deleted"));
        }
        if let Some(wanted) = &options.preconditions {
            check_preconditions(row, name, &old, wanted)?;
        }
        let mut new = Value::clone(&old);
        let grace = grace_period(row, &old, options.grace_period_seconds);
        let finalizers = wanted_finalizers(row, &old, options);
        if finalizers.is_empty() {
            new["metadata"].as_object_mut().map(|fields| fields.remove("finalizers"));
        } else {
            new["metadata"]["finalizers"] = json!(finalizers);
        }
        self.mark_deleted(row, &old, &mut new, grace)?;
        let held = !finalizers.is_empty()
            || grace > 0
            || row.is("", "namespaces")
                && old
                    .pointer("/spec/finalizers")
                    .and_then(Value::as_array)
                    .is_some_and(|list| !list.is_empty());
        if writer.dry_run {
            return Ok(if held { Answer::Value(new) } else { Answer::Value(deleted_status(row, &old)) });
        }
        let key = live.key.clone();
        convert::to_stored(row, &mut new);
        if held {
            if new == *old {
                return Ok(Answer::Stored(live));
            }
            let event = self
                .store
                .replace(&row.table, key, new, &row.selectable, live.revision)
                .map_err(|_| ApiError::modified(row.about(name)))?;
            self.changed(row, &event);
            return Ok(Answer::Stored(event.object.clone()));
        }
        // Only pods are marked on their way out when they go at once.
        if !row.is("", "pods") {
            new = Value::clone(&old);
        }
        let event = self
            .store
            .remove(&row.table, key, new, &row.selectable)
            .map_err(|_| ApiError::not_found(row.about(name)))?;
        self.changed(row, &event);
        // Pods and services answer what they were, the others a Status.
        if row.is("", "pods") || row.is("", "services") || row.is("", "serviceaccounts") {
            return Ok(Answer::Stored(event.object.clone()));
        }
        Ok(Answer::Value(deleted_status(row, &old)))
    }

    /// Deletes everything that a selector matches; answers the list.
    pub(crate) fn delete_collection(
        &mut self,
        row: &Arc<Resource>,
        namespace: Option<&str>,
        selector: &Selector,
        options: &DeleteOptions,
        writer: &Writer,
    ) -> Result<Vec<Value>, ApiError> {
        let scope = namespace.filter(|_| row.namespaced);
        let keys: Vec<ObjectKey> = self
            .store
            .scan(&row.table, scope, None)
            .filter(|object| selector.matches(object))
            .map(|object| object.key.clone())
            .collect();
        let mut deleted = Vec::with_capacity(keys.len());
        for key in keys {
            if let Some(object) = self.store.get(&row.table, &key) {
                let mut value = Value::clone(&object.value());
                if let Some(fields) = value.as_object_mut().filter(|_| !row.custom) {
                    fields.remove("kind");
                    fields.remove("apiVersion");
                }
                deleted.push(value);
                self.delete(row, &key.namespace, &key.name, options, writer)?;
            }
        }
        Ok(deleted)
    }

    /// Deletes on the sandbox' own account; an absent object is no error.
    pub(crate) fn remove_object(
        &mut self,
        row: &Arc<Resource>,
        key: &ObjectKey,
        options: &DeleteOptions,
    ) -> Result<(), ApiError> {
        if self.store.get(&row.table, key).is_none() {
            return Ok(());
        }
        self.delete(row, &key.namespace, &key.name, options, &Writer::named("sandbox")).map(|_| ())
    }

    fn mark_deleted(&self, row: &Resource, old: &Value, new: &mut Value, grace: i64) -> Result<(), ApiError> {
        let now = self.now();
        let already = !metadata::text(old, "deletionTimestamp").is_empty();
        let before = at(old, "/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
        if already && before.unwrap_or(0) <= grace {
            return Ok(());
        }
        let at = now.saturating_add(SignedDuration::from_secs(grace)).map_err(ApiError::internal)?;
        let at = jiff::Timestamp::from_second(at.as_second()).unwrap_or(at);
        new["metadata"]["deletionTimestamp"] =
            json!(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at));
        // A namespace knows no grace.
        if !row.is("", "namespaces") {
            new["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        }
        if let Some(generation) = old.pointer("/metadata/generation").and_then(Value::as_i64)
            && !already
        {
            new["metadata"]["generation"] = json!(generation + 1);
        }
        if row.is("", "namespaces") {
            new["status"]["phase"] = json!("Terminating");
        }
        Ok(())
    }
}

fn check_preconditions(
    row: &Resource,
    name: &str,
    old: &Value,
    wanted: &Preconditions,
) -> Result<(), ApiError> {
    let pairs = [
        ("UID", "uid", &wanted.uid, "deleted and then recreated"),
        ("ResourceVersion", "resourceVersion", &wanted.resource_version, "modified"),
    ];
    for (label, field, wanted, reason) in pairs {
        let found = metadata::text(old, field);
        if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != found) {
            let why = format!(
                "the {label} in the precondition ({wanted}) does not match the {label} in record ({found}). The object \
                 might have been {reason}"
            );
            // Here the kind is told, not the resource.
            return Err(ApiError::conflict(About { group: &row.group, resource: &row.kind, name }, &why));
        }
    }
    Ok(())
}

/// Only pods are given time; those that run nowhere, or no more, need none.
fn grace_period(row: &Resource, old: &Value, asked: Option<i64>) -> i64 {
    if !row.is("", "pods") {
        return 0;
    }
    let idle = at(old, "/spec/nodeName").and_then(Value::as_str).is_none_or(str::is_empty);
    let over = matches!(at(old, "/status/phase").and_then(Value::as_str), Some("Succeeded" | "Failed"));
    if idle || over {
        return 0;
    }
    let own = at(old, "/spec/terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(30);
    asked.unwrap_or(own).max(0)
}

/// The finalizers that the way of deletion asks for, beside those that others set.
fn wanted_finalizers(row: &Resource, old: &Value, options: &DeleteOptions) -> Vec<String> {
    let present = at(old, "/metadata/finalizers").and_then(Value::as_array);
    let present: Vec<&str> = present.into_iter().flatten().filter_map(Value::as_str).collect();
    let asked = options.propagation_policy.or(match options.orphan_dependents {
        Some(true) => Some(Propagation::Orphan),
        Some(false) => Some(Propagation::Background),
        None => None,
    });
    let by_default = if row.is("batch", "jobs") { Propagation::Orphan } else { Propagation::Background };
    let wanted = asked.unwrap_or(if present.contains(&ORPHAN) {
        Propagation::Orphan
    } else if present.contains(&FOREGROUND) {
        Propagation::Foreground
    } else {
        by_default
    });
    let mut out: Vec<String> = present
        .iter()
        .filter(|name| **name != ORPHAN && **name != FOREGROUND)
        .map(|name| (*name).to_owned())
        .collect();
    match wanted {
        Propagation::Orphan => out.push(ORPHAN.to_owned()),
        Propagation::Foreground => out.push(FOREGROUND.to_owned()),
        Propagation::Background => {}
    }
    out
}

fn deleted_status(row: &Resource, old: &Value) -> Value {
    let mut details = json!({
        "name": metadata::text(old, "name"),
        "kind": row.plural,
        "uid": metadata::text(old, "uid"),
    });
    if !row.group.is_empty() {
        details["group"] = json!(row.group);
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
