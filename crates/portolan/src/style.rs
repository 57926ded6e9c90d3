//! How things look. Colours are taken off where output does not go to a terminal.

use crate::human::age;
use jiff::Timestamp;
use serde_json::Value;

pub(crate) const BOLD: &str = "\u{1b}[1m";
pub(crate) const DIM: &str = "\u{1b}[2m";
pub(crate) const RED: &str = "\u{1b}[31m";
pub(crate) const GREEN: &str = "\u{1b}[32m";
pub(crate) const YELLOW: &str = "\u{1b}[33m";
pub(crate) const RESET: &str = "\u{1b}[0m";

/// Whether something is well, in one character.
pub(crate) fn mark(fine: bool) -> String {
    if fine { format!("{GREEN}✓{RESET}") } else { format!("{YELLOW}✗{RESET}") }
}

/// Whether an object is Ready for its present spec, and what its condition says.
pub(crate) fn state(object: &Value) -> (bool, String) {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let Some(ready) = conditions.into_iter().find(|each| each["type"] == "Ready") else {
        return (false, "no controller has looked at it yet".to_owned());
    };
    let message = ready["message"].as_str().unwrap_or_default().to_owned();
    let (seen, now) = (&object["status"]["observedGeneration"], &object["metadata"]["generation"]);
    if !seen.is_null() && seen != now {
        return (false, format!("its last change is not seen yet; before it: {message}"));
    }
    (ready["status"] == "True", message)
}

/// The conditions of an object, one line each.
pub(crate) fn conditions(object: &Value, now: Timestamp) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let mut shown = if conditions.is_empty() { String::new() } else { "\nConditions\n".to_owned() };
    for each in &conditions {
        let text = |field: &str| each[field].as_str().unwrap_or_default();
        let since = age(text("lastTransitionTime").parse().ok(), now);
        let (type_, status, reason, message) =
            (text("type"), text("status"), text("reason"), text("message"));
        shown.push_str(&format!("  {type_} {status} for {since}, {reason}: {message}\n"));
    }
    shown
}
