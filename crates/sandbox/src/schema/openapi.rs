//! The built-in structure in the words of OpenAPI.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::builtin::STRUCTURE;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| serde_json::from_slice(STRUCTURE).unwrap_or_default());

/// The name of a kind's type.
pub(crate) fn type_name(group: &str, version: &str, kind: &str) -> Option<String> {
    let name = DOCUMENT.get("kinds")?.get(format!("{group}/{version}/{kind}"))?;
    name.as_str().map(str::to_owned)
}

/// A reference to a type.
pub(crate) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Adds a type and all that it refers to.
pub(crate) fn collect(name: &str, into: &mut Map<String, Value>) {
    if into.contains_key(name) {
        return;
    }
    let Some(found) = DOCUMENT.get("types").and_then(|types| types.get(name)) else { return };
    into.insert(name.to_owned(), Value::Null);
    let mut referred = Vec::new();
    let written = write(found, &mut referred);
    into.insert(name.to_owned(), written);
    for name in referred {
        collect(&name, into);
    }
}

fn write(node: &Value, referred: &mut Vec<String>) -> Value {
    match node {
        Value::String(text) => match text.strip_prefix('#') {
            Some(name) => {
                referred.push(name.to_owned());
                reference(name)
            }
            None => scalar(text),
        },
        Value::Object(object) => {
            let mut out = if let Some(name) = object.get("ref").and_then(Value::as_str) {
                referred.push(name.to_owned());
                json!({"allOf": [reference(name)]})
            } else if let Some(kind) = object.get("scalar").and_then(Value::as_str) {
                let mut out = scalar(kind);
                out["default"] = object.get("default").cloned().unwrap_or_default();
                out
            } else if let Some(items) = object.get("items") {
                let mut out = json!({"type": "array", "items": write(items, referred)});
                for (short, long) in
                    [("list", "x-kubernetes-list-type"), ("keys", "x-kubernetes-list-map-keys")]
                {
                    if let Some(value) = object.get(short) {
                        out[long] = value.clone();
                    }
                }
                out
            } else if let Some(values) = object.get("values") {
                json!({"type": "object", "additionalProperties": write(values, referred)})
            } else {
                let fields = object.get("fields").and_then(Value::as_object).into_iter().flatten();
                let properties: Map<String, Value> =
                    fields.map(|(name, field)| (name.clone(), write(field, referred))).collect();
                let mut out = json!({"type": "object", "properties": properties});
                if let Some(required) = object.get("required") {
                    out["required"] = required.clone();
                }
                out
            };
            for (short, long) in
                [("mergeKey", "x-kubernetes-patch-merge-key"), ("strategy", "x-kubernetes-patch-strategy")]
            {
                if let Some(value) = object.get(short) {
                    out[long] = value.clone();
                }
            }
            out
        }
        _ => json!({}),
    }
}

fn scalar(kind: &str) -> Value {
    match kind {
        "int32" => json!({"type": "integer", "format": "int32"}),
        "integer" => json!({"type": "integer", "format": "int64"}),
        "date-time" => json!({"type": "string", "format": "date-time"}),
        "byte" => json!({"type": "string", "format": "byte"}),
        "int-or-string" => json!({"type": "string", "format": "int-or-string"}),
        "any" => json!({"type": "object"}),
        other => json!({"type": other}),
    }
}
