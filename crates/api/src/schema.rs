//! From Rust types to the structural schemas that a Kubernetes API server accepts.
//!
//! schemars says "optional" with `null` and documented enums with `oneOf`; a structural schema knows neither. Here
//! an optional field is simply not required (a `null` is dropped by the API server), and what the doc comments of
//! an enum's variants say ends up in the description, where `kubectl explain` shows it.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// A CEL rule and what it tells the user who breaks it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// The CEL expression; `self` is the object that carries the rule.
    pub(crate) rule: &'static str,
    /// What is wrong and what would be right.
    pub(crate) message: &'static str,
}

/// A rule in one line.
pub(crate) const fn rule(rule: &'static str, message: &'static str) -> Rule {
    Rule { rule, message }
}

/// Rules as `x-kubernetes-validations` wants them, for `#[schemars(extend(…))]`.
pub(crate) fn rules(groups: &[&[Rule]]) -> Value {
    groups
        .iter()
        .flat_map(|group| group.iter())
        .map(|r| json!({"rule": r.rule, "message": r.message}))
        .collect()
}

/// For lists of namespaces in which another cluster may place: who may place in a namespace reads its Secrets, and a quota
/// bounds everybody there.
pub(crate) const NO_NAMESPACE_OF_THE_SYSTEM: &[Rule] = &[rule(
    "self.all(name, !name.startsWith('kube-') && name != 'portolan' && !name.startsWith('portolan-'))",
    "namespaces of the system cannot be given to another cluster: kube-*, portolan and portolan-*",
)];

/// The schema of a whole kind out of the schemas of its spec and status.
pub(crate) fn kind_schema<Spec: JsonSchema, Status: JsonSchema>(
    generator: &mut SchemaGenerator,
    description: &str,
    root_rules: &[Rule],
    spec_is_optional: bool,
) -> Schema {
    let mut spec = structural(generator.subschema_for::<Spec>().to_value());
    describe_anew(&mut spec, "What is asked for.");
    let mut status = structural(generator.subschema_for::<Status>().to_value());
    drop_rules(&mut status);
    describe_anew(&mut status, "What was found and done. It is written by Portolan alone.");
    let mut schema = json!({
        "description": description,
        "type": "object",
        "properties": { "spec": spec, "status": status },
    });
    if spec_is_optional {
        schema["properties"]["spec"]["default"] = json!({});
    } else {
        schema["required"] = json!(["spec"]);
    }
    if !root_rules.is_empty() {
        schema["x-kubernetes-validations"] = rules(&[root_rules]);
    }
    Schema::try_from(schema).unwrap_or_default()
}

/// A status is written by controllers with these very types: rules would cost evaluation at each write and catch
/// nothing.
fn drop_rules(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.remove("x-kubernetes-validations");
            object.values_mut().for_each(drop_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_rules),
        _ => {}
    }
}

fn describe_anew(schema: &mut Value, description: &str) {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), description.into());
    }
}

/// Rewrites a schema of schemars, and all schemas inside it, into a structural one.
fn structural(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else {
        // `true`: anything goes. It appears only beneath preserved objects.
        return json!({ "x-kubernetes-preserve-unknown-fields": true });
    };
    unwrap_description(&mut schema);
    hoist_optional(&mut schema);
    hoist_enum(&mut schema);
    drop_null_type(&mut schema);
    schema.remove("title");
    schema.remove("uniqueItems");
    if schema.get("default") == Some(&Value::Null) {
        schema.remove("default");
    }
    if schema.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint")) {
        schema.remove("format");
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut() {
            *property = structural(property.take());
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(key)
            && inner.is_object()
        {
            *inner = structural(inner.take());
            // The field that holds them is explained already.
            if let Some(inner) = inner.as_object_mut()
                && !inner.contains_key("enum")
            {
                inner.remove("description");
            }
        }
    }
    Value::Object(schema)
}

/// Doc comments are wrapped for editors; `kubectl explain` wraps by itself.
fn unwrap_description(schema: &mut Map<String, Value>) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.split("\n\n").map(|p| p.replace('\n', " ")).collect::<Vec<_>>().join("\n\n");
    }
}

/// `anyOf: [X, null]` becomes X; the field's own description wins over the type's, rules of both are kept.
fn hoist_optional(schema: &mut Map<String, Value>) {
    let is_null = |schema: &Value| schema.get("type").is_some_and(|type_| type_ == "null");
    let Some(Value::Array(variants)) = schema.get("anyOf") else { return };
    let [Value::Object(inner), null] = variants.as_slice() else { return };
    if !is_null(null) {
        return;
    }
    let mut inner = inner.clone();
    unwrap_description(&mut inner);
    schema.remove("anyOf");
    for (key, value) in inner {
        match schema.get_mut(&key) {
            None => {
                schema.insert(key, value);
            }
            Some(Value::Array(outer)) if key == "x-kubernetes-validations" => {
                if let Value::Array(inner) = value {
                    outer.extend(inner);
                }
            }
            Some(_) => {}
        }
    }
}

/// `oneOf: [{const: A, description: …}, …]` becomes an `enum`, the variants' texts go into the description.
fn hoist_enum(schema: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = schema.get("oneOf") else { return };
    let mut values = Vec::new();
    let mut texts = Vec::new();
    for variant in variants {
        let (Some(value), text) = (variant.get("const"), variant.get("description")) else { return };
        values.push(value.clone());
        if let (Some(value), Some(text)) = (value.as_str(), text.and_then(Value::as_str)) {
            texts.push(format!("{value}: {}", text.replace('\n', " ")));
        }
    }
    let description = match schema.get("description").and_then(Value::as_str) {
        Some(text) => format!("{text}\n{}", texts.join("\n")),
        None => texts.join("\n"),
    };
    schema.remove("oneOf");
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), Value::Array(values));
    schema.insert("description".to_owned(), description.into());
}

/// `type: [string, null]` becomes `type: string`.
fn drop_null_type(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get("type") {
        let kept: Vec<&Value> = types.iter().filter(|type_| *type_ != "null").collect();
        if let [only] = kept.as_slice() {
            let only = (*only).clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

/// Gives a kind its schema: the description `kubectl explain` starts with, the spec, the status, and rules that
/// look at the whole object.
///
/// `defaulted` makes the spec optional: one that is left out becomes `{}`, with the defaults of its fields.
macro_rules! kind {
    (defaulted $kind:ident, $spec:ty, $status:ty, $description:expr) => {
        $crate::schema::kind!(@ $kind, $spec, $status, $description, &[], true);
    };
    ($kind:ident, $spec:ty, $status:ty, $description:expr) => {
        $crate::schema::kind!(@ $kind, $spec, $status, $description, &[], false);
    };
    ($kind:ident, $spec:ty, $status:ty, $description:expr, $rules:expr) => {
        $crate::schema::kind!(@ $kind, $spec, $status, $description, $rules, false);
    };
    (@ $kind:ident, $spec:ty, $status:ty, $description:expr, $rules:expr, $defaulted:expr) => {
        impl schemars::JsonSchema for $kind {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($kind).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $crate::schema::kind_schema::<$spec, $status>(generator, $description, $rules, $defaulted)
            }
        }
    };
}
pub(crate) use kind;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_fields_keep_their_own_description_and_all_rules() {
        let schema = structural(json!({
            "description": "of the field",
            "x-kubernetes-validations": [{"rule": "outer"}],
            "anyOf": [
                {"type": "string", "description": "of the type", "x-kubernetes-validations": [{"rule": "inner"}]},
                {"type": "null"},
            ],
        }));
        assert_eq!(
            schema,
            json!({
                "description": "of the field",
                "type": "string",
                "x-kubernetes-validations": [{"rule": "outer"}, {"rule": "inner"}],
            })
        );
    }

    #[test]
    fn documented_enums_list_their_values() {
        let schema = structural(json!({
            "description": "Which.",
            "oneOf": [{"type": "string", "const": "A", "description": "The first."}, {"type": "string", "const": "B"}],
        }));
        assert_eq!(
            schema,
            json!({"type": "string", "enum": ["A", "B"], "description": "Which.\nA: The first."})
        );
    }
}
