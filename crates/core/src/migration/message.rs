//! What the coordinator and the agents say to each other.

use portolan_api::Duration;
use portolan_api::livemigration::MigrationOrder;
use serde::{Deserialize, Serialize};

/// What an agent must know to act alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Terms {
    /// When the pod at the source is deleted.
    pub order: MigrationOrder,
    /// How long the migration may take.
    pub timeout: Duration,
    /// How long the pod may stand still before the commit: the smaller one of the user's limit and of what its probes
    /// endure.
    pub max_downtime: Duration,
}

/// An order to an agent: how far it is to go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order<Goal> {
    /// The UID of the LiveMigration.
    pub migration: String,
    /// The session of the agent, once it is known. Without it, an agent only reserves or gives up.
    pub session: Option<u64>,
    /// The fencing token: an agent that has seen a greater one ignores the order.
    pub token: i64,
    /// The terms of the migration.
    pub terms: Terms,
    /// How far to go.
    pub goal: Goal,
}

/// What an agent answers to an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Report<Stage> {
    /// It has no record of the session that it was asked for. There will never be one again.
    NoRecord {
        /// The UID of the LiveMigration.
        migration: String,
        /// The session that it was asked for.
        session: Option<u64>,
    },
    /// It has a record of another migration of the same pod.
    Busy {
        /// The UID of the LiveMigration.
        migration: String,
        /// The UID of the other one.
        with: String,
    },
    /// It begins no session, for this reason.
    Refused {
        /// The UID of the LiveMigration.
        migration: String,
        /// Why, as a sentence that users read.
        reason: String,
    },
    /// It has a record, which stands on its disk.
    Progress(Progress<Stage>),
}

/// How far an agent is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress<Stage> {
    /// The UID of the LiveMigration.
    pub migration: String,
    /// The session of the agent.
    pub session: u64,
    /// The greatest fencing token that it has seen.
    pub token: i64,
    /// How far it is.
    pub stage: Stage,
    /// What went wrong, if anything did.
    pub failure: Option<String>,
}

/// What is known of a side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Answer<Stage> {
    /// It does not answer. That says nothing about the pod.
    #[default]
    Silent,
    /// Somebody who can know says that its node is lost and runs nothing any more. Silence is never enough for that.
    ConfirmedLost,
    /// It answered this.
    Report(Report<Stage>),
}

impl<Stage> Answer<Stage> {
    /// What it reports of this migration.
    pub(super) fn progress(&self, migration: &str) -> Option<&Progress<Stage>> {
        match self {
            Self::Report(Report::Progress(progress)) if progress.migration == migration => Some(progress),
            _ => None,
        }
    }

    /// Whether nothing of this session is left there: it has no record, or its node is lost.
    pub(super) fn is_clean(&self, migration: &str, session: Option<u64>) -> bool {
        match self {
            Self::ConfirmedLost => true,
            Self::Report(Report::NoRecord { migration: of, session: asked }) => {
                of == migration && *asked == session
            }
            // Without a session nothing was begun there, and the other migration is none of ours.
            Self::Report(Report::Busy { migration: of, .. }) => of == migration && session.is_none(),
            // It may be of an order from before: that nothing is left is only said by the answer to one that gives up.
            Self::Silent | Self::Report(Report::Refused { .. } | Report::Progress(_)) => false,
        }
    }
}
