//! The CEL rules of a schema.

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

impl Validator {
    pub(crate) fn new() -> Self {
        Self(kube_cel::Validator::new())
    }

    /// The rules that an object, or its change, breaks; they are asked about a part of it. Both are what was and what is.
    pub(super) fn check(
        &self,
        rules: &CompiledSchema,
        (part_before, part): (Option<&Value>, &Value),
        (old, object): (Option<&Value>, &Value),
    ) -> Vec<Cause> {
        let Err(errors) = self.0.validate_compiled(rules, part, part_before) else { return Vec::new() };
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
    fn broken_rules_are_told_in_order() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 9", "message": "too big"}]}},
            "x-kubernetes-validations": [{"rule": "self.size >= oldSelf.size", "message": "never shrinks"}]}}});
        let rules = kube_cel::compile_schema(&schema);
        let validator = Validator::new();
        let spec = |size: i64| json!({"spec": {"size": size}});
        let told = |old: Option<&Value>, new: &Value| -> Vec<String> {
            validator
                .check(&rules, (old, new), (old, new))
                .iter()
                .map(|c| format!("{}: {}", c.field, c.message))
                .collect()
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
