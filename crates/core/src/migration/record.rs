//! What the coordinator has written down.

use super::{Step, Terms};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The record of a migration. It stands in the LiveMigration and is replaced by compare-and-swap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The UID of the LiveMigration.
    pub migration: String,
    /// The terms.
    pub terms: Terms,
    /// The fencing token. It goes up when the migration is given up, so that no earlier order counts any more.
    pub token: i64,
    /// The step it is at.
    pub step: Step,
    /// The steps that were entered, in their order, the present one last.
    pub entered: Vec<Entered>,
    /// The session of the agent at the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_session: Option<u64>,
    /// The session of the agent at the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_session: Option<u64>,
    /// Whether the source has reported that it is released. From here on there is no way back.
    #[serde(default)]
    pub released: bool,
    /// When the destination was first seen to run the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_since: Option<Timestamp>,
    /// Why the migration was given up, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abort: Option<Abort>,
    /// How it ends, once that is certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// When a step was entered, by the coordinator's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entered {
    /// The step.
    pub step: Step,
    /// When it was entered.
    pub at: Timestamp,
}

/// Why a migration was given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Abort {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub cause: AbortCause,
    /// A sentence.
    pub message: String,
}

/// Why a migration was given up, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AbortCause {
    /// The user wanted it.
    Requested,
    /// The migration took too long.
    Timeout,
    /// The pod stood still for too long.
    DowntimeExceeded,
    /// The source failed, or gave up.
    SourceFailed,
    /// The destination failed, or gave up.
    DestinationFailed,
}

/// How a migration ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The pod runs at the destination.
    Succeeded,
    /// The pod goes on at the source, as the user wanted.
    Aborted,
    /// The pod goes on at the source, because something failed.
    Failed,
    /// The pod runs nowhere: the source was released, or lost, and the destination cannot run it.
    Lost,
}

impl Record {
    /// The record of a migration that begins.
    #[must_use]
    pub fn new(migration: String, terms: Terms, token: i64, now: Timestamp) -> Self {
        Self {
            migration,
            terms,
            token,
            step: Step::Reserve,
            entered: vec![Entered { step: Step::Reserve, at: now }],
            source_session: None,
            destination_session: None,
            released: false,
            running_since: None,
            abort: None,
            outcome: None,
        }
    }

    /// When a step was entered first, if it was.
    #[must_use]
    pub fn entered_at(&self, step: Step) -> Option<Timestamp> {
        self.entered.iter().find(|entered| entered.step == step).map(|entered| entered.at)
    }

    /// Whether the source may have been told to release the pod.
    pub(super) fn may_be_released(&self) -> bool {
        self.entered_at(Step::Commit).is_some()
    }

    pub(super) fn enter(&mut self, step: Step, now: Timestamp) {
        self.step = step;
        self.entered.push(Entered { step, at: now });
    }
}
