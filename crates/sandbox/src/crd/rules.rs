//! The CEL rules of a schema.

use std::collections::BTreeSet;
use std::fmt;

use kube_cel::{CompiledSchema, ErrorKind};
use serde_json::Value;

use super::path;
use crate::error::Cause;

/// Evaluates rules; made once, since it knows many functions.
pub(crate) struct Validator(kube_cel::Validator);

impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Validator")
    }
}

/// The fields of a schema that no rule above them speaks of, and whose rules that look back hold for what is left as it
/// was. Such a field is asked about only when it is written: what was wrong and is untouched is left alone.
pub(super) fn on_their_own(schema: &Value) -> BTreeSet<String> {
    if schema.get("x-kubernetes-validations").is_some() {
        return BTreeSet::new();
    }
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let apart = fields.filter(|(name, below)| *name != "metadata" && holds_untouched(below));
    apart.map(|(name, _)| name.clone()).collect()
}

/// Whether no rule of a schema that looks back could be broken by what is the same as before.
fn holds_untouched(schema: &Value) -> bool {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    let texts = rules.into_iter().flatten().filter_map(|rule| rule["rule"].as_str());
    let mut looking_back = texts.filter(|text| text.contains("oldSelf"));
    let below = |key: &str| schema.get(key).and_then(Value::as_object).into_iter().flatten();
    let each = |key: &str| schema.get(key).filter(|below| below.is_object()).is_none_or(holds_untouched);
    looking_back.all(|text| is_sameness(text, schema))
        && below("properties").all(|(_, field)| holds_untouched(field))
        && each("items")
        && each("additionalProperties")
}

/// Whether a rule says no more than that a field, which is there for sure, stays the same.
fn is_sameness(rule: &str, schema: &Value) -> bool {
    let Some((now, before)) = rule.split_once(" == ") else { return false };
    let field = |side: &str, of: &str| side.strip_prefix(of)?.strip_prefix('.').map(str::to_owned);
    let there = |name: &str| {
        let required = schema.get("required").and_then(Value::as_array);
        required.into_iter().flatten().any(|each| each == name)
            || schema["properties"][name].get("default").is_some()
    };
    match (field(now, "self"), field(before, "oldSelf")) {
        (Some(now), Some(before)) => now == before && there(&now),
        _ => (now, before) == ("self", "oldSelf"),
    }
}

impl Validator {
    pub(crate) fn new() -> Self {
        Self(kube_cel::Validator::new())
    }

    /// The rules that an object, or its change, breaks.
    pub(super) fn check(&self, rules: &CompiledSchema, old: Option<&Value>, object: &Value) -> Vec<Cause> {
        let Err(errors) = self.0.validate_compiled(rules, object, old) else { return Vec::new() };
        let mut causes = Vec::new();
        for error in errors.into_vec() {
            let field = error.field_path.trim_start_matches('.').to_owned();
            let transition = error.rule.contains("oldSelf");
            if !transition && old.is_some_and(|old| path::unchanged(old, object, &field)) {
                continue;
            }
            let value = path::find(object, &field).filter(|value| !value.is_object() && !value.is_array());
            let detail = match error.kind {
                ErrorKind::ValidationFailure => error.message.clone(),
                _ => format!("{} evaluating rule: {}", error.message, error.rule),
            };
            let (reason, kind) = match error.reason.as_deref() {
                Some("FieldValueRequired") => ("FieldValueRequired", "Required value"),
                Some("FieldValueForbidden") => ("FieldValueForbidden", "Forbidden"),
                Some("FieldValueDuplicate") => ("FieldValueDuplicate", "Duplicate value"),
                _ => ("FieldValueInvalid", "Invalid value"),
            };
            let message = match value.filter(|_| matches!(kind, "Invalid value" | "Duplicate value")) {
                Some(value) => format!("{kind}: {value}: {detail}"),
                None => format!("{kind}: {detail}"),
            };
            causes.push(Cause {
                reason,
                field: if field.is_empty() { "<nil>".to_owned() } else { field },
                message,
            });
        }
        // The compiled schema keeps its fields in no particular order.
        causes.sort_by(|a: &Cause, b| (&a.field, &a.message).cmp(&(&b.field, &b.message)));
        causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_that_look_back_or_across_keep_a_field_in_sight() {
        let rule = |rule: &str| json!({"type": "object", "required": ["a"], "x-kubernetes-validations": [{"rule": rule}]});
        let mut schema = json!({"type": "object", "properties": {
            "metadata": {"type": "object"}, "spec": rule("self.a > 1"), "grows": rule("self.a > oldSelf.a"),
            "stays": rule("self.a == oldSelf.a"), "optional": rule("self.b == oldSelf.b"),
            "within": {"type": "array", "items": rule("self.a > oldSelf.a")}}});
        assert_eq!(on_their_own(&schema), BTreeSet::from(["spec".to_owned(), "stays".to_owned()]));
        schema["x-kubernetes-validations"] = json!([{"rule": "self.spec.a > self.status.b"}]);
        assert_eq!(on_their_own(&schema), BTreeSet::new());
    }

    #[test]
    fn broken_rules_are_told_in_order() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 9", "message": "too big"}]}},
            "x-kubernetes-validations": [{"rule": "self.size >= oldSelf.size", "message": "never shrinks"}]}}});
        let rules = kube_cel::compile_schema(&schema);
        let validator = Validator::new();
        let spec = |size: i64| json!({"spec": {"size": size}});
        let told = |old: Option<&Value>, new: &Value| -> Vec<String> {
            validator.check(&rules, old, new).iter().map(|c| format!("{}: {}", c.field, c.message)).collect()
        };
        assert_eq!(told(None, &spec(10)), ["spec.size: Invalid value: 10: too big"]);
        assert_eq!(told(Some(&spec(2)), &spec(1)), ["spec: Invalid value: never shrinks"]);
        let both = ["spec: Invalid value: never shrinks", "spec.size: Invalid value: 10: too big"];
        assert_eq!(told(Some(&spec(11)), &spec(10)), both);
        assert_eq!(
            told(Some(&spec(10)), &spec(10)),
            [""; 0],
            "what was wrong and is untouched is left alone"
        );
    }
}
