//! The schema of an object, checked and worded as the API server does.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::Regex;
use serde_json::{Value, json};

use super::{formats, path};
use crate::error::Cause;

/// Everything that is wrong with an object by its schema, but for fields of it that are as they were.
pub(super) fn validate(object: &Value, old: Option<&Value>, schema: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    check_fields(object, old, schema, "", &mut causes);
    causes
}

fn check(value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    if value.is_null() && schema.get("nullable") == Some(&Value::Bool(true)) {
        return;
    }
    if let Some(wanted) = wrong_type(value, schema) {
        let found = kind(value);
        let message = format!("Invalid value: {found:?}: {path} in body must be of type {wanted}: {found:?}");
        causes.push(Cause { reason: "FieldValueTypeInvalid", field: path.to_owned(), message });
        return;
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        let mut listed: Vec<String> = allowed
            .iter()
            .map(|value| format!("{:?}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
            .collect();
        listed.sort();
        let message = format!("Unsupported value: {value}: supported values: {}", listed.join(", "));
        causes.push(Cause { reason: "FieldValueNotSupported", field: path.to_owned(), message });
    }
    check_number(value, schema, path, causes);
    check_text(value, schema, path, causes);
    check_list(value, schema, path, causes);
    check_fields(value, None, schema, path, causes);
    check_junctors(value, schema, path, causes);
}

/// The type that was wanted, if the value is not of it.
fn wrong_type(value: &Value, schema: &Value) -> Option<String> {
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return (!value.is_string() && !value.is_i64()).then(|| "integer,string".to_owned());
    }
    let wanted = schema.get("type").and_then(Value::as_str)?;
    let fits = match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => true,
    };
    (!fits).then(|| wanted.to_owned())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_number(value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(number) = value.as_f64() else { return };
    let mut fail = |detail: String| {
        causes.push(Cause::invalid(path, value, &format!("{path} in body should be {detail}")))
    };
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let exclusive = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    if let Some(minimum) = bound("minimum") {
        if exclusive("exclusiveMinimum") && number <= minimum {
            fail(format!("greater than {minimum}"));
        } else if number < minimum {
            fail(format!("greater than or equal to {minimum}"));
        }
    }
    if let Some(maximum) = bound("maximum") {
        if exclusive("exclusiveMaximum") && number >= maximum {
            fail(format!("less than {maximum}"));
        } else if number > maximum {
            fail(format!("less than or equal to {maximum}"));
        }
    }
    if let Some(step) = bound("multipleOf").filter(|step| *step != 0.0)
        && (number / step).fract() != 0.0
    {
        fail(format!("a multiple of {step}"));
    }
}

fn count(schema: &Value, key: &str) -> Option<usize> {
    schema.get(key).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok())
}

fn check_text(value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(text) = value.as_str() else { return };
    let length = text.chars().count();
    if let Some(least) = count(schema, "minLength").filter(|least| length < *least) {
        causes.push(Cause::invalid(
            path,
            value,
            &format!("{path} in body should be at least {least} chars long"),
        ));
    }
    if let Some(most) = count(schema, "maxLength").filter(|most| length > *most) {
        let unit = if most == 1 { "byte" } else { "bytes" };
        let message = format!("Too long: may not be more than {most} {unit}");
        causes.push(Cause { reason: "FieldValueTooLong", field: path.to_owned(), message });
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && !matches(pattern, text)
    {
        causes.push(Cause::invalid(path, value, &format!("{path} in body should match '{pattern}'")));
    }
    if let Some(format) = schema.get("format").and_then(Value::as_str)
        && !formats::holds(format, text)
    {
        let detail = format!("{path} in body must be of type {format}: {text:?}");
        causes.push(Cause { reason: "FieldValueTypeInvalid", ..Cause::invalid(path, value, &detail) });
    }
}

/// Patterns are searched for, not anchored; each is compiled once. One that does not compile refuses nothing, as
/// the definition that brought it is judged elsewhere.
fn matches(pattern: &str, text: &str) -> bool {
    static COMPILED: LazyLock<Mutex<BTreeMap<String, Option<Regex>>>> = LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let regex = compiled.entry(pattern.to_owned()).or_insert_with(|| Regex::new(pattern).ok());
    regex.as_ref().is_none_or(|regex| regex.is_match(text))
}

fn check_list(value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(items) = value.as_array() else { return };
    if let Some(least) = count(schema, "minItems").filter(|least| items.len() < *least) {
        let detail = format!("{path} in body should have at least {least} items");
        causes.push(Cause::invalid(path, &json!(items.len()), &detail));
    }
    too_many(items.len(), count(schema, "maxItems"), path, causes);
    let unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
    let relation = schema.get("x-kubernetes-list-type").and_then(Value::as_str).unwrap_or_default();
    let keys: Vec<&str> = schema
        .get("x-kubernetes-list-map-keys")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (index, item) in items.iter().enumerate() {
        let identity = |item: &Value| -> Value {
            match relation {
                "map" => keys
                    .iter()
                    .map(|key| ((*key).to_owned(), item.get(*key).cloned().unwrap_or_default()))
                    .collect(),
                _ => item.clone(),
            }
        };
        let repeats = items[..index].iter().any(|other| identity(other) == identity(item));
        if repeats && (unique || matches!(relation, "set" | "map")) {
            let message = format!("Duplicate value: {}", identity(item));
            causes.push(Cause { reason: "FieldValueDuplicate", field: path::item(path, index), message });
        }
        if let Some(below) = schema.get("items") {
            check(item, below, &path::item(path, index), causes);
        }
    }
}

fn too_many(found: usize, most: Option<usize>, path: &str, causes: &mut Vec<Cause>) {
    if let Some(most) = most.filter(|most| found > *most) {
        let unit = if most == 1 { "item" } else { "items" };
        let message = format!("Too many: {found}: must have at most {most} {unit}");
        causes.push(Cause { reason: "FieldValueTooMany", field: path.to_owned(), message });
    }
}

fn check_fields(value: &Value, old: Option<&Value>, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(fields) = value.as_object() else { return };
    if let Some(least) = count(schema, "minProperties").filter(|least| fields.len() < *least) {
        let detail = format!("{path} in body should have at least {least} properties");
        causes.push(Cause::invalid(path, &json!(fields.len()), &detail));
    }
    too_many(fields.len(), count(schema, "maxProperties"), path, causes);
    for name in
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        if !fields.contains_key(name) {
            causes.push(Cause::required(path::child(path, name), ""));
        }
    }
    let named = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties").filter(|others| others.is_object());
    for (name, child) in fields {
        // Metadata has its own rules, the same for all kinds.
        if path.is_empty() && name == "metadata" {
            continue;
        }
        if old.and_then(|old| old.get(name)) == Some(child) {
            continue;
        }
        if let Some(below) = named.and_then(|named| named.get(name)).or(others) {
            check(child, below, &path::child(path, name), causes);
        }
    }
}

fn check_junctors(value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let branches = |key: &str| schema.get(key).and_then(Value::as_array);
    let holds = |branch: &Value| {
        let mut inner = Vec::new();
        check(value, branch, path, &mut inner);
        inner.is_empty()
    };
    let shown =
        |causes: &mut Vec<Cause>, detail: String| causes.push(Cause::invalid(path, &json!(""), &detail));
    if let Some(all) = branches("allOf") {
        all.iter().for_each(|branch| check(value, branch, path, causes));
    }
    if let Some(any) = branches("anyOf")
        && !any.iter().any(holds)
    {
        shown(causes, format!("{path:?} must validate at least one schema (anyOf)"));
    }
    if let Some(one) = branches("oneOf") {
        let count = one.iter().filter(|branch| holds(branch)).count();
        if count != 1 {
            let found = if count == 0 {
                "Found none valid".to_owned()
            } else {
                format!("Found {count} valid alternatives")
            };
            shown(causes, format!("{path:?} must validate one and only one schema (oneOf). {found}"));
        }
    }
    if schema.get("not").is_some_and(holds) {
        shown(causes, format!("{path:?} must not validate the schema (not)"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(schema: &Value, object: &Value) -> Vec<String> {
        validate(object, None, schema)
            .into_iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect()
    }

    #[test]
    fn messages_are_those_of_the_api_server() {
        let schema = json!({"properties": {"spec": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^[a-z]+$"},
            "count": {"type": "integer", "minimum": 0},
            "mode": {"type": "string", "enum": ["B", "A"]},
            "list": {"type": "array", "maxItems": 1, "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        }}}});
        let spec = |spec: Value| told(&schema, &json!({ "spec": spec }));
        assert_eq!(spec(json!({})), ["spec.name: Required value"]);
        assert_eq!(spec(json!({"name": "abcd"})), ["spec.name: Too long: may not be more than 3 bytes"]);
        assert_eq!(
            spec(json!({"name": "A"})),
            ["spec.name: Invalid value: \"A\": spec.name in body should match '^[a-z]+$'"]
        );
        assert_eq!(
            spec(json!({"name": "a", "count": -1})),
            ["spec.count: Invalid value: -1: spec.count in body should be greater than or equal to 0"]
        );
        assert_eq!(
            spec(json!({"name": "a", "count": "1"})),
            ["spec.count: Invalid value: \"string\": spec.count in body must be of type integer: \"string\""]
        );
        assert_eq!(
            spec(json!({"name": "a", "mode": "C"})),
            ["spec.mode: Unsupported value: \"C\": supported values: \"A\", \"B\""]
        );
        assert_eq!(
            spec(json!({"name": "a", "list": ["x", "x"]})),
            ["spec.list: Too many: 2: must have at most 1 item", "spec.list[1]: Duplicate value: \"x\""]
        );
    }
}
