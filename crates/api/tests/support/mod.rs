//! An API server's validation in miniature: defaults, structural schema, CEL rules. Messages are worded as
//! kube-apiserver words them, as far as the examples look at them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::cel::{Validator, apply_defaults};
use serde_json::Value;

static SCHEMAS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let schema = |crd: CustomResourceDefinition| {
        let validation = crd.spec.versions.into_iter().next().and_then(|version| version.schema);
        (crd.spec.names.kind, serde_json::to_value(validation.and_then(|v| v.open_api_v3_schema)).unwrap())
    };
    portolan_api::crds().into_iter().map(schema).collect()
});

/// The schema of a kind.
pub(crate) fn schema_of(kind: &str) -> &'static Value {
    &SCHEMAS[kind]
}

/// The object with the defaults of its schema. An API server also fills in what a default itself leaves out.
pub(crate) fn with_defaults(schema: &Value, object: &Value) -> Value {
    let mut object = object.clone();
    loop {
        let filled = apply_defaults(schema, &object);
        if filled == object {
            return object;
        }
        object = filled;
    }
}

/// What is wrong with an object, or with its update from `old`.
pub(crate) fn validate(schema: &Value, object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut errors = Vec::new();
    structural(schema, object, "", &mut errors);
    if errors.is_empty()
        && let Err(failures) = Validator::new().validate(schema, object, old)
    {
        errors.extend(failures.iter().map(|failure| failure.message.clone()));
    }
    errors
}

fn structural(schema: &Value, value: &Value, path: &str, errors: &mut Vec<String>) {
    let kind = schema["type"].as_str();
    let fits = match kind {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64(),
        Some("boolean") => value.is_boolean(),
        _ => value.is_string() || value.is_i64(),
    };
    if !fits {
        errors.push(format!("{path}: must be of type {}", kind.unwrap_or("integer or string")));
        return;
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        errors.push(format!("{path}: Unsupported value: {value}"));
    }
    bounds(schema, value, path, errors);
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            errors.push(format!("{}: Required value", join(path, name)));
        }
    }
    for (name, inner) in value.as_object().into_iter().flatten() {
        let known = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
        if let Some(known) = known {
            structural(known, inner, &join(path, name), errors);
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        structural(&schema["items"], item, &format!("{path}[{index}]"), errors);
    }
    duplicates(schema, value, path, errors);
}

fn bounds(schema: &Value, value: &Value, path: &str, errors: &mut Vec<String>) {
    let mut check = |key: &str, measure: Option<i64>, below: bool, unit: &str| {
        if let (Some(bound), Some(measure)) = (schema[key].as_f64(), measure) {
            let broken = if below { (measure as f64) < bound } else { (measure as f64) > bound };
            if broken {
                let word = match (below, unit) {
                    (true, "") => "be greater than or equal to",
                    (false, "") => "be less than or equal to",
                    (true, _) => "have at least",
                    (false, _) => "have at most",
                };
                errors.push(format!("{path}: {path} in body should {word} {bound}{unit}"));
            }
        }
    };
    let length = value.as_str().map(|text| text.chars().count() as i64);
    let items = value.as_array().map(|items| items.len() as i64);
    let properties = value.as_object().map(|properties| properties.len() as i64);
    check("minimum", value.as_i64(), true, "");
    check("maximum", value.as_i64(), false, "");
    check("minLength", length, true, " chars");
    check("maxLength", length, false, " chars");
    check("minItems", items, true, " items");
    check("maxItems", items, false, " items");
    check("minProperties", properties, true, " properties");
    check("maxProperties", properties, false, " properties");
}

fn duplicates(schema: &Value, value: &Value, path: &str, errors: &mut Vec<String>) {
    let keys: Vec<&str> = schema["x-kubernetes-list-map-keys"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if !matches!(schema["x-kubernetes-list-type"].as_str(), Some("set" | "map")) {
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        let identity = if keys.is_empty() {
            item.to_string()
        } else {
            keys.iter().map(|key| item[*key].to_string()).collect()
        };
        if !seen.insert(identity) {
            errors.push(format!("{path}[{index}]: Duplicate value: {item}"));
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
