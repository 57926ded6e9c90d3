//! Which parts of an object the rules of its schema speak of, and which of them a write could have broken.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Where a schema has rules.
#[derive(Debug)]
pub(super) struct Ruled {
    whole: About,
    /// The fields that have rules, and whether what is left as it was is sure to keep them.
    fields: BTreeMap<String, bool>,
}

/// What the rules about an object as a whole read of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    /// There are none.
    Nothing,
    /// Its name: that is most often all, since a schema has no other place for a rule about names.
    Name,
    /// Anything.
    Anything,
}

/// The part of an object that rules are asked about.
#[derive(Debug, PartialEq)]
pub(super) enum Part {
    Whole,
    /// Some fields, and what they were.
    Fields(Value, Option<Value>),
    Nothing,
}

impl Ruled {
    pub(super) fn of(schema: &Value) -> Self {
        let rules = schema.get(RULES).map(|rules| rules.as_array().map(Vec::as_slice).unwrap_or_default());
        let whole = rules
            .map_or(About::Nothing, |rules| rules.iter().map(About::of).max().unwrap_or(About::Anything));
        let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let ruled = fields.filter(|(_, below)| has_rules(below));
        let fields = ruled.map(|(name, below)| (name.clone(), holds_untouched(below))).collect();
        Self { whole, fields }
    }

    /// What a write could have broken: what was wrong before and is untouched is left alone.
    pub(super) fn part(&self, old: Option<&Value>, object: &Value) -> Part {
        let Some(fields) = object.as_object().filter(|_| self.whole != About::Anything) else {
            return Part::Whole;
        };
        let asked = |name: &str, value: &Value| {
            self.fields.get(name).is_some_and(|holds_untouched| {
                !(*holds_untouched && old.is_some_and(|old| old.get(name) == Some(value)))
            })
        };
        let asked: Vec<&str> =
            fields.iter().filter(|(name, value)| asked(name, value)).map(|(name, _)| name.as_str()).collect();
        if asked.is_empty() && self.whole == About::Nothing {
            return Part::Nothing;
        }
        Part::Fields(self.fields_of(object, &asked), old.map(|old| self.fields_of(old, &asked)))
    }

    /// Some fields of an object, and its name if rules about the object as a whole read it.
    fn fields_of(&self, object: &Value, names: &[&str]) -> Value {
        let copy = |from: &Value, names: &[&str]| -> Map<String, Value> {
            names.iter().filter_map(|name| Some(((*name).to_owned(), from.get(*name)?.clone()))).collect()
        };
        let mut fields = copy(object, names);
        if let Some(metadata) = object.get("metadata").filter(|_| self.whole == About::Name)
            && !fields.contains_key("metadata")
        {
            fields.insert("metadata".to_owned(), Value::Object(copy(metadata, &NAMES)));
        }
        Value::Object(fields)
    }
}

impl About {
    fn of(rule: &Value) -> Self {
        let mut texts = ["rule", "messageExpression"].into_iter().filter_map(|key| rule.get(key)?.as_str());
        let reads_names = texts.all(reads_names_only);
        if reads_names && rule.get("fieldPath").is_none() { Self::Name } else { Self::Anything }
    }
}

/// Whether an expression reads nothing of an object but its name, and nothing of what it was.
fn reads_names_only(expression: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut read = expression.match_indices("self").peekable();
    read.peek().is_some()
        && !expression.contains("oldSelf")
        && read.all(|(at, text)| {
            let before = expression[..at].chars().next_back();
            let after = expression[at + text.len()..].strip_prefix(".metadata.");
            let name = after.map(|after| &after[..after.find(|c| !is_part(c)).unwrap_or(after.len())]);
            !before.is_some_and(is_part) && name.is_some_and(|name| NAMES.contains(&name))
        })
}

const RULES: &str = "x-kubernetes-validations";

/// The fields of metadata that rules may read.
const NAMES: [&str; 2] = ["name", "generateName"];

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
            Part::Fields(Value::Object(fields), before) => {
                assert_eq!(before.is_some(), old.is_some());
                fields.keys().cloned().collect::<Vec<_>>().join(" ")
            }
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
        schema[RULES] = json!([{"rule": "size(self.metadata.name) <= 63"}]);
        assert_eq!(asked(&schema, Some(&old), &old), "grows metadata optional within");
    }

    #[test]
    fn a_rule_about_the_name_is_asked_about_the_name_alone() {
        let schema = json!({"type": "object", RULES: [{"rule": "size(self.metadata.name) <= 63"}]});
        let object = |phase: &str| json!({"metadata": {"name": "a", "uid": "1"}, "status": {"phase": phase}});
        let name = json!({"metadata": {"name": "a"}});
        let (old, new) = (object("old"), object("new"));
        assert_eq!(Ruled::of(&schema).part(None, &new), Part::Fields(name.clone(), None));
        assert_eq!(Ruled::of(&schema).part(Some(&old), &new), Part::Fields(name.clone(), Some(name)));
        for (rule, about) in [
            ("self.metadata.name.matches('^[a-z]+$')", About::Name),
            ("self.metadata.name == 'a' || self.metadata.generateName != 'b'", About::Name),
            ("self.metadata.name != self.spec.name", About::Anything),
            ("self.metadata.names", About::Anything),
            ("self.metadata.name == oldSelf.metadata.name", About::Anything),
            ("has(self.metadata)", About::Anything),
            ("self['metadata'].name == 'a'", About::Anything),
            ("true", About::Anything),
        ] {
            assert_eq!(About::of(&json!({ "rule": rule })), about, "{rule}");
        }
        let told = json!({"rule": "self.metadata.name != ''", "messageExpression": "string(self.spec.a)"});
        assert_eq!(About::of(&told), About::Anything);
    }
}
