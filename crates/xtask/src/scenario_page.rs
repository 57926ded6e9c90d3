//! The reference of the scenario file, from its schema.

use serde_json::{Map, Value};
use std::fmt::Write;

/// The page: every part of a scenario with its fields, types and defaults.
pub(crate) fn page(schema: &Value) -> String {
    let mut text = String::from(
        "# Scenario files\n\n\
         This page is written by `cargo xtask generate` from the types. `portolan simulate --schema` prints the same as a JSON \
         schema, and [Simulate a fleet](../tasks/simulate.md) shows how scenarios are used.\n\n\
         ## Traces\n\n\
         A trace is a CSV file whose first line is `time,kind,cpu,memory,duration,location`. `time` and `duration` are seconds or \
         durations such as `1h30m`. `kind` is `job` or `service`; if it is empty, `tasks.serviceFrom` decides. `cpu` and `memory` are \
         quantities, and `location` is the name of a cluster. Empty lines and lines that begin with `#` are skipped.\n",
    );
    section(&mut text, "Scenario", schema);
    for (name, part) in schema["$defs"].as_object().into_iter().flatten() {
        section(&mut text, name, part);
    }
    text
}

fn section(text: &mut String, name: &str, part: &Value) {
    let _ = writeln!(text, "\n## {name}\n\n{}", description(part));
    let alternatives = part["oneOf"].as_array().into_iter().flatten();
    let cases: Vec<(String, Value)> = alternatives.flat_map(cases).collect();
    if !cases.is_empty() {
        let _ = writeln!(text, "\nOne of:\n\n| field | type | meaning |\n|---|---|---|");
        cases.iter().for_each(|(field, schema)| row(text, field, schema, false));
        return;
    }
    let Some(fields) = part["properties"].as_object() else {
        let _ = writeln!(text, "\nWritten as {}.", type_of(part));
        return;
    };
    let _ = writeln!(text, "\n| field | type | meaning |\n|---|---|---|");
    rows(text, "", fields, &part["required"]);
}

/// The fields that one alternative consists of, or the word that it is.
fn cases(alternative: &Value) -> Vec<(String, Value)> {
    if let Some(word) = alternative["const"].as_str() {
        return vec![(word.to_owned(), alternative.clone())];
    }
    let words = alternative["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let fields = alternative["properties"].as_object().into_iter().flatten();
    let described = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        if description(&schema).is_empty() || schema.get("$ref").is_some() {
            schema["description"] = alternative["description"].clone();
        }
        (name.clone(), schema)
    };
    words.map(|word| (word.to_owned(), alternative.clone())).chain(fields.map(described)).collect()
}

fn rows(text: &mut String, path: &str, fields: &Map<String, Value>, required: &Value) {
    for (name, schema) in fields {
        let needed = required.as_array().into_iter().flatten().any(|each| each == name);
        row(text, &format!("{path}{name}"), schema, needed);
    }
}

fn row(text: &mut String, field: &str, schema: &Value, required: bool) {
    let mut meaning = description(schema);
    if let Some(default) = schema.get("default").filter(|default| is_worth_telling(default)) {
        let _ = write!(meaning, " Default: `{default}`.");
    }
    if required {
        meaning.push_str(" Required.");
    }
    let _ = writeln!(text, "| `{field}` | {} | {} |", type_of(schema), meaning.trim());
    if let Some(inner) = schema["properties"].as_object() {
        rows(text, &format!("{field}."), inner, &schema["required"]);
    }
}

/// Whether a default says more than that nothing is given.
fn is_worth_telling(default: &Value) -> bool {
    match default {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn description(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|")
}

/// The type in words, with a link where it is a part of its own.
fn type_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|target| target.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let types: Vec<String> = any.iter().filter(|each| each["type"] != "null").map(type_of).collect();
        return types.join(" or ");
    }
    let names: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => {
            names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    };
    match names.as_slice() {
        [] => "any".to_owned(),
        ["array"] if schema.get("prefixItems").is_some() => "list of two".to_owned(),
        ["array"] => format!("list of {}", type_of(&schema["items"])),
        ["object"] if schema["additionalProperties"].is_object() => {
            format!("map to {}", type_of(&schema["additionalProperties"]))
        }
        _ => names.join(" or "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_and_every_case_has_a_row_with_words() {
        let page = page(&portolan_simulator::schema());
        for row in [
            "| `duration` | [Duration](#duration) | How long it lasts, in simulated time. Required. |",
            "| `clusters` | list of [ClusterSpec](#clusterspec) |",
            "| `cloudRecovers` |",
            "| `loseNode` | object | A node falls silent with its pods. |",
            "| `loseNode.node` | [NodeRef](#noderef) |",
        ] {
            assert!(page.contains(row), "{row} is not in\n{page}");
        }
        let wordless: Vec<&str> =
            page.lines().filter(|line| line.starts_with("| `") && line.ends_with("|  |")).collect();
        assert!(wordless.is_empty(), "{wordless:?}");
    }
}
