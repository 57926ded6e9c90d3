//! The rules of metadata, the same for every kind.

use serde_json::{Map, Value, json};

use crate::error::{ApiError, Cause};
use crate::registry::{Generation, Resource};
use crate::schema::{Node, Relation, type_error};
use crate::store::at;

/// Metadata that only the server writes.
pub(super) const SERVER_OWNED: &[&str] = &[
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
];

pub(super) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get(field))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Checks that a body is an object of the row's kind, sent to the right place.
pub(super) fn check_body(row: &Resource, namespace: &str, object: &mut Value) -> Result<(), ApiError> {
    let wrong_type = if row.custom { None } else { type_error(object, &row.node) };
    let Some(fields) = object.as_object_mut() else {
        return Err(ApiError::bad_request(format!("the body must be one {} object", row.kind)));
    };
    let version = row.api_version();
    for (field, expected) in [("apiVersion", &version), ("kind", &row.kind)] {
        match fields.get(field) {
            None => {
                fields.insert(field.to_owned(), json!(expected));
            }
            Some(Value::String(given)) if given == expected => {}
            Some(given) => {
                let message = match field {
                    "kind" => format!(
                        "{} in version {version:?} cannot be handled as a {}: kind is {given}",
                        row.kind, row.kind
                    ),
                    _ => format!(
                        "the API version in the data ({}) does not match the expected API version ({expected})",
                        given.as_str().unwrap_or_default()
                    ),
                };
                return Err(ApiError::bad_request(message));
            }
        }
    }
    if let Some(error) = wrong_type {
        let message =
            format!("{} in version {:?} cannot be handled as a {}: {error}", row.kind, row.version, row.kind);
        return Err(ApiError::bad_request(message));
    }
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    let Some(metadata) = metadata.as_object_mut() else {
        return Err(ApiError::bad_request("metadata must be an object"));
    };
    check_metadata_types(metadata)?;
    if row.namespaced {
        match metadata.get("namespace").and_then(Value::as_str).unwrap_or_default() {
            "" => {
                metadata.insert("namespace".to_owned(), json!(namespace));
            }
            given if given == namespace => {}
            _ => {
                return Err(ApiError::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
        }
    } else {
        metadata.remove("namespace");
    }
    Ok(())
}

fn check_metadata_types(metadata: &mut Map<String, Value>) -> Result<(), ApiError> {
    for field in ["name", "generateName", "namespace", "resourceVersion", "uid"] {
        if metadata.get(field).is_some_and(|value| !value.is_string() && !value.is_null()) {
            return Err(ApiError::bad_request(format!("metadata.{field} must be a string")));
        }
    }
    for field in ["labels", "annotations"] {
        match metadata.get(field) {
            None => {}
            Some(Value::Null) => {
                metadata.remove(field);
            }
            Some(Value::Object(map)) if map.values().all(Value::is_string) => {}
            Some(_) => {
                return Err(ApiError::bad_request(format!("metadata.{field} must be a map of strings")));
            }
        }
    }
    for field in ["finalizers", "ownerReferences"] {
        match metadata.get(field) {
            None => {}
            Some(Value::Null) => {
                metadata.remove(field);
            }
            Some(Value::Array(_)) => {}
            Some(_) => return Err(ApiError::bad_request(format!("metadata.{field} must be a list"))),
        }
    }
    metadata.retain(|_, value| !value.is_null());
    Ok(())
}

/// Owner references that cannot work.
pub(super) fn check_owners(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let owners = at(object, "/metadata/ownerReferences").and_then(Value::as_array);
    let mut first: Option<String> = None;
    for owner in owners.into_iter().flatten() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
                let empty = json!(owner.get(field).and_then(Value::as_str).unwrap_or_default());
                causes.push(Cause::invalid(
                    format!("metadata.ownerReferences.{field}"),
                    &empty,
                    "must not be empty",
                ));
            }
        }
        if owner.get("controller") == Some(&json!(true)) {
            let of = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
            let name = format!("{}/{}", of("kind"), of("name"));
            if let Some(first) = &first {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                );
                let message = format!("Invalid value: {}: {detail}", shown_owners(object));
                let field = "metadata.ownerReferences".to_owned();
                causes.push(Cause { reason: "FieldValueInvalid", field, message });
            }
            first.get_or_insert(name);
        }
    }
    causes
}

/// Owners as Go writes them, their fields in the order of the struct.
fn shown_owners(object: &Value) -> String {
    let owners = at(object, "/metadata/ownerReferences").and_then(Value::as_array);
    let shown = |owner: &Value| {
        let order = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
        let fields = order.iter().filter_map(|name| Some(format!("{name:?}:{}", owner.get(name)?)));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    };
    format!("[{}]", owners.into_iter().flatten().map(shown).collect::<Vec<_>>().join(","))
}

/// Drops what a typed object cannot hold: nulls, and empty lists and maps that nobody requires.
pub(super) fn normalise(value: &mut Value, node: &Node) {
    match value {
        Value::Object(fields) => {
            let required: &[String] = match node.resolve() {
                Node::Struct(declared) => &declared.required,
                _ => &[],
            };
            if matches!(node.resolve(), Node::Any) {
                return;
            }
            for (name, child) in fields.iter_mut() {
                normalise(child, node.field(name).0);
            }
            fields.retain(|name, child| {
                if child.is_null() {
                    return false;
                }
                let below = node.field(name).0.resolve();
                let empty = match (&*child, below) {
                    (Value::Array(items), Node::List(_)) => items.is_empty(),
                    (Value::Object(map), Node::Map(_)) => map.is_empty(),
                    _ => false,
                };
                !empty || required.contains(name)
            });
        }
        Value::Array(items) => {
            let below = node.list().0;
            for item in items.iter_mut() {
                normalise(item, below);
            }
            if *node.list().1 == Relation::Set {
                let mut seen: Vec<Value> = Vec::with_capacity(items.len());
                items.retain(|item| {
                    let new = !seen.contains(item);
                    if new {
                        seen.push(item.clone());
                    }
                    new
                });
            }
        }
        _ => {}
    }
}

/// The generation after a change.
pub(super) fn next_generation(row: &Resource, old: &Value, new: &Value) -> Option<i64> {
    let before = at(old, "/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
    let changed = match row.generation {
        Generation::None => return None,
        Generation::Spec => match row.kind.as_str() {
            "EndpointSlice" => {
                old.get("endpoints") != new.get("endpoints") || old.get("ports") != new.get("ports")
            }
            _ => old.get("spec") != new.get("spec"),
        },
        Generation::All => {
            let skipped = |name: &str| name == "metadata" || name == "status" && row.status;
            let rest = |object: &Value| -> Map<String, Value> {
                let fields = object.as_object().into_iter().flatten();
                fields.filter(|(name, _)| !skipped(name)).map(|(n, v)| (n.clone(), v.clone())).collect()
            };
            rest(old) != rest(new)
        }
    };
    Some(if changed { before + 1 } else { before })
}
