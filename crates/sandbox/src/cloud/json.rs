//! Reading and naming objects of Cluster API.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The letters of generated names: no vowels, nothing that looks like something else.
const NAME_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A text inside an object; empty if there is none.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A flag inside an object.
pub(super) fn flag(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
}

/// A number inside an object.
pub(super) fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

/// A list inside an object; empty if there is none.
pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The name of an object.
pub(super) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// The namespace of an object.
pub(super) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

/// Whether an object is being deleted.
pub(super) fn deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// The value of a label.
pub(super) fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.pointer("/metadata/labels")?.get(key)?.as_str()
}

/// The value of an annotation.
pub(super) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.pointer("/metadata/annotations")?.get(key)?.as_str()
}

/// Whether an object has this finalizer.
pub(super) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    list(object, "/metadata/finalizers").iter().any(|found| found.as_str() == Some(finalizer))
}

/// The reference that makes `owner` own another object, as its controller or not.
pub(super) fn owner_reference(api_version: &str, kind: &str, owner: &Value, controller: bool) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "name": name(owner),
        "uid": text(owner, "/metadata/uid"),
        "controller": controller,
        "blockOwnerDeletion": true,
    })
}

/// The condition of this type.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(object, "/status/conditions").iter().find(|found| text(found, "/type") == kind)
}

/// Whether a condition is true.
pub(super) fn holds(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|found| text(found, "/status") == "True")
}

/// The end of a generated name: five letters that follow from the parts.
pub(super) fn suffix(parts: &[&str]) -> String {
    let digest = Sha256::digest(parts.join("/"));
    let letters =
        digest.iter().take(5).filter_map(|byte| NAME_ALPHABET.get(usize::from(*byte) % NAME_ALPHABET.len()));
    letters.map(|letter| char::from(*letter)).collect()
}
