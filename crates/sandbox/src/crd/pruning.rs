//! Fields that no schema names do not get into the store.

use serde_json::{Map, Value};

use super::path;

/// Prunes a custom object; tells the paths that went.
pub(super) fn prune_object(object: &mut Value, schema: &Value) -> Vec<String> {
    let mut gone = Vec::new();
    prune(object, schema, "", true, &mut gone);
    gone
}

fn is_set(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

fn prune(value: &mut Value, schema: &Value, path: &str, resource: bool, gone: &mut Vec<String>) {
    match value {
        Value::Object(fields) => prune_fields(fields, schema, path, resource, gone),
        Value::Array(items) => {
            let below = schema.get("items").unwrap_or(&Value::Null);
            for (index, item) in items.iter_mut().enumerate() {
                prune(
                    item,
                    below,
                    &path::item(path, index),
                    is_set(below, "x-kubernetes-embedded-resource"),
                    gone,
                );
            }
        }
        _ => {}
    }
}

fn prune_fields(
    fields: &mut Map<String, Value>,
    schema: &Value,
    path: &str,
    resource: bool,
    gone: &mut Vec<String>,
) {
    let keep_all = is_set(schema, "x-kubernetes-preserve-unknown-fields");
    let named = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties");
    let open = keep_all || others == Some(&Value::Bool(true));
    fields.retain(|name, value| {
        if resource && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            return true;
        }
        let here = path::child(path, name);
        let below = named.and_then(|named| named.get(name)).or(others.filter(|others| others.is_object()));
        match below {
            Some(below) => {
                prune(value, below, &here, is_set(below, "x-kubernetes-embedded-resource"), gone);
                true
            }
            None if open => true,
            None => {
                gone.push(here);
                false
            }
        }
    });
}
