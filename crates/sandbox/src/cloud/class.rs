//! The status of a ClusterClass.

use serde_json::{Value, json};

use super::conditions::{Conditions, no, yes};
use super::json::{flag, list, text};

/// What the status of a class says: it can be used, and these are its variables.
pub(super) fn status(class: &Value, time: &Value) -> Value {
    let mut conditions = Conditions::of(class, time);
    conditions.set("VariablesReady", &yes("VariablesReady"));
    conditions.set("RefVersionsUpToDate", &yes("RefVersionsUpToDate"));
    conditions.set("Paused", &no("NotPaused", ""));
    let variable = |variable: &Value| {
        json!({
            "name": text(variable, "/name"),
            "definitionsConflict": false,
            "definitions": [{
                "from": "inline",
                "required": flag(variable, "/required"),
                "schema": variable.get("schema"),
            }],
        })
    };
    json!({
        "observedGeneration": class.pointer("/metadata/generation"),
        "conditions": conditions.into_value(),
        "variables": list(class, "/spec/variables").iter().map(variable).collect::<Vec<_>>(),
    })
}
