//! Objects are kept in one version; other versions are converted on their way in and out.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::registry::Resource;
use crate::store::Stored;

/// The fields that differ between the two groups of events: core name, events.k8s.io name.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Turns an object as the row's version has it into the stored form.
pub(crate) fn to_stored(row: &Resource, object: &mut Value) {
    if row.group == "events.k8s.io" && !row.custom {
        rename(object, |(core, new)| (new, core));
    }
    object["apiVersion"] = json!(row.stored_as);
    object["kind"] = json!(row.kind);
}

/// The object as the row's version shows it.
pub(crate) fn present(row: &Resource, object: &Stored) -> Bytes {
    if row.stored_as == row.api_version() {
        return object.bytes.clone();
    }
    serde_json::to_vec(&*shown(row, object)).unwrap_or_default().into()
}

/// A stored object in the row's version.
pub(crate) fn shown(row: &Resource, object: &Stored) -> Arc<Value> {
    let mut value = object.value();
    if row.stored_as != row.api_version() {
        from_stored(row, Arc::make_mut(&mut value));
    }
    value
}

/// Turns a stored object into the row's version.
pub(crate) fn from_stored(row: &Resource, object: &mut Value) {
    if row.group == "events.k8s.io" && !row.custom {
        rename(object, |(core, new)| (core, new));
    }
    object["apiVersion"] = json!(row.api_version());
}

fn rename(object: &mut Value, direction: fn((&'static str, &'static str)) -> (&'static str, &'static str)) {
    let Some(fields) = object.as_object_mut() else { return };
    for pair in EVENT_FIELDS {
        let (from, to) = direction(*pair);
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}
