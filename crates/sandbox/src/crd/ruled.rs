//! Which parts of an object the rules of its schema speak of, and which of them a write could have broken.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Where a schema has rules.
#[derive(Debug)]
pub(super) enum Ruled {
    /// Some are about the object as a whole.
    Together,
    /// The fields that have rules, and whether what is left as it was is sure to keep them.
    Apart(BTreeMap<String, bool>),
}

/// The part of an object that rules are asked about.
#[derive(Debug, PartialEq)]
pub(super) enum Part {
    Whole,
    Fields(Value),
    Nothing,
}

impl Ruled {
    pub(super) fn of(schema: &Value) -> Self {
        if schema.get(RULES).is_some() {
            return Self::Together;
        }
        let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let ruled = fields.filter(|(_, below)| has_rules(below));
        Self::Apart(ruled.map(|(name, below)| (name.clone(), holds_untouched(below))).collect())
    }

    /// What a write could have broken: what was wrong before and is untouched is left alone.
    pub(super) fn part(&self, old: Option<&Value>, object: &Value) -> Part {
        let (Self::Apart(ruled), Value::Object(fields)) = (self, object) else { return Part::Whole };
        let asked = |name: &String, value: &Value| {
            ruled.get(name).is_some_and(|holds_untouched| {
                !(*holds_untouched && old.is_some_and(|old| old.get(name) == Some(value)))
            })
        };
        let asked = fields.iter().filter(|(name, value)| asked(name, value));
        let asked: Map<_, _> = asked.map(|(name, value)| (name.clone(), value.clone())).collect();
        if asked.is_empty() { Part::Nothing } else { Part::Fields(Value::Object(asked)) }
    }
}

const RULES: &str = "x-kubernetes-validations";

fn has_rules(schema: &Value) -> bool {
    schema.get(RULES).is_some() || below(schema).any(has_rules)
}

/// The schemas of what is inside.
fn below(schema: &Value) -> impl Iterator<Item = &Value> {
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let items = ["items", "additionalProperties"].into_iter().filter_map(|key| schema.get(key));
    fields.map(|(_, field)| field).chain(items.filter(|items| items.is_object()))
}

/// Whether no rule of a schema that looks back could be broken by what is the same as before.
fn holds_untouched(schema: &Value) -> bool {
    let rules = schema.get(RULES).and_then(Value::as_array);
    let texts = rules.into_iter().flatten().filter_map(|rule| rule["rule"].as_str());
    let mut looking_back = texts.filter(|text| text.contains("oldSelf"));
    looking_back.all(|text| is_sameness(text, schema)) && below(schema).all(holds_untouched)
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rule(rule: &str) -> Value {
        json!({"type": "object", "required": ["a"], RULES: [{"rule": rule}]})
    }

    #[test]
    fn a_field_is_asked_about_when_its_rules_could_be_broken() {
        let mut schema = json!({"type": "object", "properties": {
            "metadata": {"type": "object"}, "spec": rule("self.a > 1"), "grows": rule("self.a > oldSelf.a"),
            "stays": rule("self.a == oldSelf.a"), "optional": rule("self.b == oldSelf.b"),
            "within": {"type": "array", "items": rule("self.a > oldSelf.a")}, "status": {"type": "object"}}});
        let names = ["metadata", "spec", "grows", "stays", "optional", "within", "status"];
        let old = Value::Object(names.iter().map(|name| ((*name).to_owned(), json!({"a": 1}))).collect());
        let asked = |schema: &Value, old: Option<&Value>, new: &Value| match Ruled::of(schema).part(old, new)
        {
            Part::Fields(Value::Object(fields)) => fields.keys().cloned().collect::<Vec<_>>().join(" "),
            other => format!("{other:?}"),
        };
        assert_eq!(asked(&schema, None, &old), "grows optional spec stays within", "all that has rules");
        assert_eq!(asked(&schema, Some(&old), &old), "grows optional within", "what looks back");
        let mut new = old.clone();
        new["spec"]["a"] = json!(2);
        assert_eq!(asked(&schema, Some(&old), &new), "grows optional spec within");
        assert_eq!(asked(&schema, None, &json!({"status": {}})), "Nothing");
        schema[RULES] = json!([{"rule": "self.spec.a > self.status.b"}]);
        assert_eq!(asked(&schema, Some(&old), &new), "Whole");
    }
}
