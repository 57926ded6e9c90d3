//! Defaults of a schema.

use serde_json::Value;

/// Fills in defaults, also inside of what a default itself brought in; nulls that may not be go.
pub(super) fn apply(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(fields) => {
            let named = schema.get("properties").and_then(Value::as_object);
            for (name, below) in named.into_iter().flatten() {
                let nullable = below.get("nullable") == Some(&Value::Bool(true));
                if fields.get(name).is_some_and(Value::is_null) && !nullable {
                    fields.remove(name);
                }
                if let (None, Some(default)) = (fields.get(name), below.get("default")) {
                    fields.insert(name.clone(), default.clone());
                }
                if let Some(child) = fields.get_mut(name) {
                    apply(child, below);
                }
            }
            if let Some(below) = schema.get("additionalProperties").filter(|below| below.is_object()) {
                for (_, child) in
                    fields.iter_mut().filter(|(name, _)| named.is_none_or(|n| !n.contains_key(*name)))
                {
                    apply(child, below);
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = schema.get("items") {
                items.iter_mut().for_each(|item| apply(item, below));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_go_all_the_way_down() {
        let schema = json!({"properties": {
            "a": {"default": {}, "properties": {"b": {"default": 1}}},
            "n": {"nullable": true, "default": 2},
            "list": {"items": {"properties": {"x": {"default": "y"}}}},
        }});
        let mut value = json!({"n": null, "list": [{}]});
        apply(&mut value, &schema);
        assert_eq!(value, json!({"a": {"b": 1}, "n": null, "list": [{"x": "y"}]}));
        let mut value = json!({"a": null});
        apply(&mut value, &schema);
        assert_eq!(value["a"], json!({"b": 1}));
    }
}
