//! Conditions: what a controller has found out about an object, and since when.

use std::fmt;

pub use crate::condition_type::ConditionType;
use crate::reasons::Reason;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::{Schema, SchemaGenerator, json_schema};

/// Whether a condition holds. `Unknown` is a state of its own: a silent cluster is not a broken one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// It cannot be told whether the condition holds.
    Unknown,
}

impl ConditionStatus {
    /// The name as it stands in `status.conditions[].status`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A condition as a controller decides it; [`set`] adds the transition time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which condition.
    pub type_: ConditionType,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why it has this status.
    pub reason: Reason,
    /// A sentence for people: object, rule, number, what would help.
    pub message: String,
}

impl Finding {
    /// A finding with its reason and message.
    pub fn new(
        type_: ConditionType,
        status: impl Into<ConditionStatus>,
        reason: Reason,
        message: impl Into<String>,
    ) -> Self {
        Self { type_, status: status.into(), reason, message: message.into() }
    }
}

/// The longest message that the schema takes, in characters.
const MESSAGE_AT_MOST: usize = 32_768;

/// Cuts a message that the API server would refuse, with the whole status. Whoever makes messages keeps them far shorter.
fn bounded(mut message: String) -> String {
    const CUT: &str = "…";
    if let Some((end, _)) = message.char_indices().nth(MESSAGE_AT_MOST) {
        let end = message[..end].char_indices().next_back().map_or(0, |(last, _)| last);
        message.truncate(end);
        message.push_str(CUT);
    }
    message
}

/// Writes `finding` into `conditions`, and says whether anything changed.
///
/// The transition time moves only when the status does, and `Ready` stays first, the others in order of their
/// appearance: so the same findings give the same bytes.
pub fn set(
    conditions: &mut Vec<Condition>,
    finding: Finding,
    generation: Option<i64>,
    now: Timestamp,
) -> bool {
    let existing = conditions.iter_mut().find(|condition| condition.type_ == finding.type_.as_str());
    let transition = match &existing {
        Some(old) if old.status == finding.status.as_str() => old.last_transition_time.clone(),
        _ => Time(now),
    };
    let new = Condition {
        type_: finding.type_.to_string(),
        status: finding.status.to_string(),
        reason: finding.reason.into(),
        message: bounded(finding.message),
        observed_generation: generation,
        last_transition_time: transition,
    };
    match existing {
        Some(old) if *old == new => false,
        Some(old) => {
            *old = new;
            true
        }
        None if finding.type_ == ConditionType::Ready => {
            conditions.insert(0, new);
            true
        }
        None => {
            conditions.push(new);
            true
        }
    }
}

/// Removes a condition that says nothing any more, and says whether it was there.
pub fn remove(conditions: &mut Vec<Condition>, type_: ConditionType) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_.as_str());
    conditions.len() != before
}

/// The condition of this type, if it is there.
pub fn find(conditions: &[Condition], type_: ConditionType) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == type_.as_str())
}

/// Whether the condition of this type is there and `True`.
pub fn is_true(conditions: &[Condition], type_: ConditionType) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == ConditionStatus::True.as_str())
}

/// The schema of a list of conditions, for `#[schemars(schema_with)]`.
pub(crate) fn conditions_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 32,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": {
                    "description": "What the condition is about, in CamelCase.",
                    "type": "string", "minLength": 1, "maxLength": 316,
                },
                "status": {
                    "description": "Whether the condition holds.",
                    "type": "string", "enum": ["True", "False", "Unknown"],
                },
                "observedGeneration": {
                    "description": "The metadata.generation that the condition was found for. If it is older than the \
                        object's generation, the condition does not yet reflect the present spec.",
                    "type": "integer", "format": "int64", "minimum": 0,
                },
                "lastTransitionTime": {
                    "description": "When the status of the condition last changed.",
                    "type": "string", "format": "date-time",
                },
                "reason": {
                    "description": "One word in CamelCase, for programs, that says why the condition has this status.",
                    "type": "string", "minLength": 1, "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "message": {
                    "description": "A sentence for people: what was found, with which numbers, and what would help.",
                    "type": "string", "maxLength": 32768,
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(type_: ConditionType, holds: bool, message: &str) -> Finding {
        Finding::new(type_, holds, Reason::Pending, message)
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn transition_time_moves_only_with_the_status() {
        let mut conditions = Vec::new();
        assert!(set(&mut conditions, finding(ConditionType::Placed, false, "no room"), Some(1), at(1)));
        assert!(!set(&mut conditions, finding(ConditionType::Placed, false, "no room"), Some(1), at(2)));
        assert!(set(&mut conditions, finding(ConditionType::Placed, false, "still none"), Some(2), at(3)));
        assert_eq!(conditions[0].last_transition_time, Time(at(1)));
        assert_eq!(conditions[0].observed_generation, Some(2));
        assert!(set(&mut conditions, finding(ConditionType::Placed, true, "placed"), Some(2), at(4)));
        assert_eq!(conditions[0].last_transition_time, Time(at(4)));
        assert!(is_true(&conditions, ConditionType::Placed));
    }

    #[test]
    fn a_message_is_cut_where_the_schema_ends() {
        let mut conditions = Vec::new();
        set(&mut conditions, finding(ConditionType::Ready, true, &"ü".repeat(40_000)), None, at(1));
        let message = &conditions[0].message;
        assert_eq!((message.chars().count(), message.ends_with("ü…")), (MESSAGE_AT_MOST, true));
        set(&mut conditions, finding(ConditionType::Placed, true, &"x".repeat(MESSAGE_AT_MOST)), None, at(1));
        assert_eq!(conditions[1].message.len(), MESSAGE_AT_MOST, "what fits is not cut");
    }

    #[test]
    fn ready_comes_first_and_removal_is_told() {
        let mut conditions = Vec::new();
        set(&mut conditions, finding(ConditionType::Placed, true, ""), None, at(1));
        set(&mut conditions, finding(ConditionType::Ready, true, ""), None, at(1));
        assert_eq!(conditions[0].type_, "Ready");
        assert!(remove(&mut conditions, ConditionType::Placed));
        assert!(!remove(&mut conditions, ConditionType::Placed));
        assert!(find(&conditions, ConditionType::Placed).is_none());
    }
}
