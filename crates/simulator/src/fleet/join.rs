//! A fleet together with what a user wants to happen to it.

use crate::scenario::{Scenario, ScenarioError};
use serde_json::{Map, Value};

/// The lists of a scenario whose entries have names: an entry of the user changes that of the fleet with the same name.
const NAMED: [&str; 3] = ["clusters", "clouds", "machineTypes"];

/// Adds the scenario file of a user to that of a fleet; the answer is the text of a scenario.
///
/// Lists are appended to those of the fleet. Clusters, clouds and machine types of the same name are changed field by field, and a
/// latency between the same sites takes the place of that of the fleet. Every other field of the file goes before that of the
/// fleet. The file needs no field that the fleet has.
///
/// # Errors
/// The file is not YAML, or is no scenario at all.
pub fn join(fleet: &Scenario, file: &str, text: &str) -> Result<String, ScenarioError> {
    let wrong = |message: String| ScenarioError {
        file: file.to_owned(),
        field: String::new(),
        message,
        hint: Some("`portolan simulate --schema` prints the schema of a scenario".to_owned()),
    };
    let given: Value =
        serde_saphyr::from_str(text).map_err(|error| wrong(format!("it is not YAML: {error}")))?;
    let given = match given {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        _ => return Err(wrong("it is not a scenario: it has no fields".to_owned())),
    };
    let mut whole = serde_json::to_value(fleet).map_err(|error| wrong(error.to_string()))?;
    if let Value::Object(fields) = &mut whole {
        join_fields(fields, given);
    }
    Ok(whole.to_string())
}

fn join_fields(fleet: &mut Map<String, Value>, given: Map<String, Value>) {
    for (key, value) in given {
        match (fleet.get_mut(&key), value) {
            (Some(Value::Array(known)), Value::Array(more)) => join_lists(&key, known, more),
            (Some(Value::Object(known)), Value::Object(more)) => join_fields(known, more),
            (Some(known), value) => *known = value,
            (None, value) => {
                fleet.insert(key, value);
            }
        }
    }
}

fn join_lists(key: &str, known: &mut Vec<Value>, more: Vec<Value>) {
    for entry in more {
        let same = known.iter_mut().find(|each| is_same(key, each, &entry));
        match (same, entry) {
            (Some(Value::Object(known)), Value::Object(entry)) if NAMED.contains(&key) => {
                // Nodes are given in one way or the other.
                if entry.contains_key("nodes") {
                    known.remove("nodeList");
                }
                if entry.contains_key("nodeList") {
                    known.remove("nodes");
                    known.remove("nodeList");
                }
                join_fields(known, entry);
            }
            (Some(known), entry) => *known = entry,
            (None, entry) => known.push(entry),
        }
    }
}

fn is_same(key: &str, one: &Value, other: &Value) -> bool {
    if NAMED.contains(&key) {
        return one["name"].is_string() && one["name"] == other["name"];
    }
    let sites = |latency: &Value| {
        let mut sites: Vec<String> =
            latency["between"].as_array().into_iter().flatten().map(Value::to_string).collect();
        sites.sort();
        sites
    };
    key == "latencies" && sites(one) == sites(other)
}
