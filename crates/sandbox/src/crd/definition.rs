//! Whether a custom resource definition is one.

use std::collections::BTreeMap;

use kube_cel::CompiledSchema;
use serde_json::{Value, json};

use super::{Definition, path};
use crate::error::Cause;
use crate::store::at;

/// What is wrong with a definition.
pub(crate) fn validate_definition(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let text = |pointer: &str| at(object, pointer).and_then(Value::as_str).unwrap_or_default();
    for (pointer, field) in [
        ("/spec/group", "spec.group"),
        ("/spec/scope", "spec.scope"),
        ("/spec/names/plural", "spec.names.plural"),
        ("/spec/names/kind", "spec.names.kind"),
    ] {
        if text(pointer).is_empty() {
            causes.push(Cause::required(field, ""));
        }
    }
    if !matches!(text("/spec/scope"), "" | "Namespaced" | "Cluster") {
        let message = format!(
            "Unsupported value: {:?}: supported values: \"Cluster\", \"Namespaced\"",
            text("/spec/scope")
        );
        causes.push(Cause { reason: "FieldValueNotSupported", field: "spec.scope".to_owned(), message });
    }
    let expected = format!("{}.{}", text("/spec/names/plural"), text("/spec/group"));
    if text("/metadata/name") != expected {
        let name = json!(text("/metadata/name"));
        causes.push(Cause::invalid("metadata.name", &name, "must be spec.names.plural+\".\"+spec.group"));
    }
    let versions: Vec<&Value> =
        at(object, "/spec/versions").and_then(Value::as_array).into_iter().flatten().collect();
    let stored = versions.iter().filter(|version| version.get("storage") == Some(&json!(true))).count();
    if stored != 1 {
        let shown = json!(at(object, "/spec/versions"));
        causes.push(Cause::invalid(
            "spec.versions",
            &shown,
            "must have exactly one version marked as storage version",
        ));
    }
    for (index, version) in versions.iter().enumerate() {
        let field = path::item("spec.versions", index);
        match at(version, "/schema/openAPIV3Schema") {
            None => causes.push(Cause::required(format!("{field}.schema.openAPIV3Schema"), "")),
            Some(schema) => {
                // A schema that all versions share is told without them.
                let place = match versions.len() {
                    1 => "spec.validation.openAPIV3Schema".to_owned(),
                    _ => format!("{field}.schema.openAPIV3Schema"),
                };
                check_schema(schema, &place, true, &mut causes);
                check_rules(&Definition::of(schema).rules, &place, &mut causes);
            }
        }
    }
    causes
}

/// The rules of structural schemas that are most often broken.
fn check_schema(schema: &Value, place: &str, root: bool, causes: &mut Vec<Cause>) {
    let flag = |key: &str| schema.get(key) == Some(&json!(true));
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    let untyped = flag("x-kubernetes-int-or-string") || flag("x-kubernetes-preserve-unknown-fields");
    if kind.is_empty() && !untyped {
        let detail = if root {
            "must not be empty at the root"
        } else {
            "must not be empty for specified object fields"
        };
        causes.push(Cause::required(format!("{place}.type"), detail));
    } else if root && kind != "object" {
        causes.push(Cause::invalid(format!("{place}.type"), &json!(kind), "must be object at the root"));
    }
    if kind == "array" && schema.get("items").is_none() {
        causes.push(Cause::required(format!("{place}.items"), "must be specified"));
    }
    check_default(schema, place, causes);
    check_fields_of_rules(schema, place, root, causes);
    for (name, below) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if !(root && matches!(name.as_str(), "metadata" | "apiVersion" | "kind")) {
            check_schema(below, &format!("{place}.properties[{name}]"), false, causes);
        }
    }
    if let Some(below) = schema.get("items") {
        check_schema(below, &format!("{place}.items"), false, causes);
    }
    if let Some(below) = schema.get("additionalProperties").filter(|below| below.is_object()) {
        check_schema(below, &format!("{place}.additionalProperties"), false, causes);
    }
}

/// A default that the schema itself would refuse.
fn check_default(schema: &Value, place: &str, causes: &mut Vec<Cause>) {
    let (Some(default), Some(known)) = (schema.get("default"), schema.get("enum").and_then(Value::as_array))
    else {
        return;
    };
    if !known.contains(default) {
        let known: Vec<&str> = known.iter().filter_map(Value::as_str).collect();
        causes.push(Cause::unsupported(format!("{place}.default"), default, &known));
    }
}

/// Rules that speak of fields which the schema does not have.
fn check_fields_of_rules(schema: &Value, place: &str, root: bool, causes: &mut Vec<Cause>) {
    let Some(fields) = schema.get("properties").and_then(Value::as_object) else { return };
    if schema.get("x-kubernetes-preserve-unknown-fields").is_some()
        || schema.get("additionalProperties").is_some()
    {
        return;
    }
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    for (index, rule) in rules.into_iter().flatten().enumerate() {
        let text = rule.get("rule").and_then(Value::as_str).unwrap_or_default();
        for (at, name) in fields_of_self(text) {
            // Names that CEL cannot spell are written with underscores.
            let known = fields.contains_key(name) || name.contains("__");
            if known || root && matches!(name, "metadata" | "apiVersion" | "kind") {
                continue;
            }
            let dots = ".".repeat(at);
            let field = format!("{place}.x-kubernetes-validations[{index}].rule");
            let told = |key: &str| json!(rule.get(key).and_then(Value::as_str).unwrap_or_default());
            let message = format!(
                "Invalid value: {{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":null,\"FieldPath\":{},\
                 \"OptionalOldSelf\":null}}: compilation failed: ERROR: <input>:1:{}: undefined field '{name}'\n | {text}\n | {dots}^",
                told("rule")
                    .to_string()
                    .replace('>', "\\u003e")
                    .replace('<', "\\u003c")
                    .replace('&', "\\u0026"),
                told("message"),
                told("messageExpression"),
                told("fieldPath"),
                at + 1,
            );
            causes.push(Cause { reason: "FieldValueInvalid", field, message });
        }
    }
}

/// Where a rule speaks of a field of `self`: the place of the dot, and the name. Calls and texts are none.
fn fields_of_self(rule: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut quote = None;
    for (at, letter) in rule.char_indices() {
        match (quote, letter) {
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            _ => {}
        }
        let before = rule[..at].chars().next_back();
        let word = before.is_none_or(|before| !before.is_alphanumeric() && !matches!(before, '_' | '.'));
        let Some(rest) = rule[at..].strip_prefix("self.").filter(|_| quote.is_none() && word) else {
            continue;
        };
        let end =
            rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len());
        if end > 0 && !rest[end..].trim_start().starts_with('(') {
            found.push((at + "self".len(), &rest[..end]));
        }
    }
    found
}

/// Rules that do not compile, wherever they are.
fn check_rules(schema: &CompiledSchema, place: &str, causes: &mut Vec<Cause>) {
    for (index, rule) in schema.validations.iter().enumerate() {
        if let Err(error) = rule {
            let field = format!("{place}.x-kubernetes-validations[{index}].rule");
            causes.push(Cause::invalid(field, &json!(""), &format!("compilation failed: {error}")));
        }
    }
    let named: BTreeMap<_, _> = schema.properties.iter().collect();
    for (name, below) in named {
        check_rules(below, &format!("{place}.properties[{name}]"), causes);
    }
    for (part, below) in [("items", &schema.items), ("additionalProperties", &schema.additional_properties)] {
        if let Some(below) = below {
            check_rules(below, &format!("{place}.{part}"), causes);
        }
    }
}
