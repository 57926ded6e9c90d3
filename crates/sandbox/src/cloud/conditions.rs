//! Conditions, and how those of several parts become one.

use serde_json::{Value, json};

use super::json::{list, text};

/// What a condition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) status: &'static str,
    pub(super) reason: String,
    pub(super) message: String,
}

/// It is so.
pub(super) fn yes(reason: impl Into<String>) -> Verdict {
    Verdict { status: "True", reason: reason.into(), message: String::new() }
}

/// It is not so.
pub(super) fn no(reason: impl Into<String>, message: impl Into<String>) -> Verdict {
    Verdict { status: "False", reason: reason.into(), message: message.into() }
}

/// Nobody knows.
pub(super) fn unknown(reason: impl Into<String>, message: impl Into<String>) -> Verdict {
    Verdict { status: "Unknown", reason: reason.into(), message: message.into() }
}

impl Verdict {
    /// It is so, and this is to be said about it.
    pub(super) fn with(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// The verdict that a condition of another object gives.
    pub(super) fn of(condition: &Value) -> Self {
        let status = match text(condition, "/status") {
            "True" => "True",
            "False" => "False",
            _ => "Unknown",
        };
        Self {
            status,
            reason: text(condition, "/reason").to_owned(),
            message: text(condition, "/message").to_owned(),
        }
    }

    pub(super) fn holds(&self) -> bool {
        self.status == "True"
    }
}

/// The conditions of an object as they will be.
pub(super) struct Conditions {
    all: Vec<Value>,
    generation: Value,
    time: Value,
}

impl Conditions {
    /// Begins with those that the object has.
    pub(super) fn of(object: &Value, time: &Value) -> Self {
        let generation = object.pointer("/metadata/generation").cloned().unwrap_or(json!(1));
        Self { all: list(object, "/status/conditions").to_vec(), generation, time: time.clone() }
    }

    /// Sets a condition; the time of its transition moves only with its status.
    pub(super) fn set(&mut self, kind: &str, verdict: &Verdict) {
        let before = self.all.iter().position(|found| text(found, "/type") == kind);
        let same = before.and_then(|index| self.all.get(index));
        let same = same.filter(|found| text(found, "/status") == verdict.status);
        let since = same.and_then(|found| found.get("lastTransitionTime")).unwrap_or(&self.time);
        let mut condition = json!({
            "type": kind,
            "status": verdict.status,
            "reason": verdict.reason,
            "lastTransitionTime": since,
            "observedGeneration": self.generation,
        });
        if !verdict.message.is_empty() {
            condition["message"] = json!(verdict.message);
        }
        match before.and_then(|index| self.all.get_mut(index)) {
            Some(found) => *found = condition,
            None => self.all.push(condition),
        }
    }

    pub(super) fn into_value(self) -> Value {
        Value::Array(self.all)
    }
}

/// The reasons of a summary: all is well, something is not, something is not known.
pub(super) type Reasons = [&'static str; 3];

/// One verdict of several: what is not so outweighs what is not known, and both say whose they are.
pub(super) fn summary<'a>(
    parts: impl IntoIterator<Item = (String, &'a Verdict)>,
    reasons: Reasons,
) -> Verdict {
    let parts: Vec<(String, &Verdict)> = parts.into_iter().collect();
    let [well, bad, open] = reasons;
    let having = |status: &'static str| parts.iter().filter(move |(_, verdict)| verdict.status == status);
    let lines = || {
        let told = having("False").chain(having("Unknown"));
        let told = told.map(|(name, verdict)| match verdict.message.as_str() {
            "" => format!("* {name}: {}", verdict.reason),
            message if message.starts_with("* ") => format!("* {name}:\n  {}", message.replace('\n', "\n  ")),
            message => format!("* {name}: {message}"),
        });
        told.collect::<Vec<_>>().join("\n")
    };
    if having("False").next().is_some() {
        no(bad, lines())
    } else if having("Unknown").next().is_some() {
        unknown(open, lines())
    } else {
        yes(well)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transition_time_moves_only_with_the_status() {
        let object = json!({"metadata": {"generation": 2}, "status": {"conditions": [
            {"type": "Ready", "status": "False", "reason": "NotReady", "lastTransitionTime": "then"},
        ]}});
        let mut conditions = Conditions::of(&object, &json!("now"));
        conditions.set("Ready", &no("QuotaExceeded", "no more"));
        conditions.set("Available", &yes("Available"));
        let all = conditions.into_value();
        assert_eq!((text(&all, "/0/lastTransitionTime"), text(&all, "/0/reason")), ("then", "QuotaExceeded"));
        assert_eq!((text(&all, "/1/lastTransitionTime"), &all[1]["observedGeneration"]), ("now", &json!(2)));
    }

    #[test]
    fn what_is_not_so_outweighs_what_is_not_known() {
        let reasons = ["Ready", "NotReady", "ReadyUnknown"];
        let (well, open, bad) =
            (yes("Ready"), unknown("InspectionFailed", "Waiting"), no("QuotaExceeded", "full"));
        let part = |name: &str| name.to_owned();
        assert_eq!(summary([(part("a"), &well)], reasons), yes("Ready"));
        assert_eq!(
            summary([(part("a"), &well), (part("b"), &open)], reasons),
            unknown("ReadyUnknown", "* b: Waiting")
        );
        let both = summary([(part("b"), &open), (part("c"), &bad)], reasons);
        assert_eq!(both, no("NotReady", "* c: full\n* b: Waiting"));
    }
}
