//! Which orders an agent obeys.

use super::{Order, Progress, Report};
use serde::{Deserialize, Serialize};

/// What ties the record of an agent to one attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fence {
    /// The UID of the LiveMigration.
    pub migration: String,
    /// The number that the agent drew when it began. It is never drawn again.
    pub session: u64,
    /// The greatest token that the agent has seen.
    pub token: i64,
}

/// What an order is worth to an agent that has a record.
pub(super) enum Admission<Goal, Stage> {
    /// Go there. The order may be one that reserves or gives up and does not know the session yet.
    Goal {
        /// How far to go.
        goal: Goal,
        /// Whether the order names the session.
        knows_session: bool,
    },
    /// There is no order, or one that is out of date: go on as the record says.
    None,
    /// The order is not about this record; this is the answer.
    Answer(Report<Stage>),
}

impl Fence {
    /// Judges an order, and takes over its token.
    pub(super) fn admit<Goal: Copy, Stage>(&mut self, order: Option<&Order<Goal>>) -> Admission<Goal, Stage> {
        let Some(order) = order else { return Admission::None };
        let migration = order.migration.clone();
        if order.session.is_some_and(|session| session != self.session) {
            return Admission::Answer(Report::NoRecord { migration, session: order.session });
        }
        if order.migration != self.migration {
            return Admission::Answer(Report::Busy { migration, with: self.migration.clone() });
        }
        if order.token < self.token {
            return Admission::None;
        }
        self.token = order.token;
        Admission::Goal { goal: order.goal, knows_session: order.session.is_some() }
    }

    /// The report about a record.
    pub(super) fn report<Stage>(&self, stage: Stage, failure: Option<&String>) -> Report<Stage> {
        Report::Progress(Progress {
            migration: self.migration.clone(),
            session: self.session,
            token: self.token,
            stage,
            failure: failure.cloned(),
        })
    }
}
