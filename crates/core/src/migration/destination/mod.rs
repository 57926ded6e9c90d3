//! The agent at the destination: prepares the pod, restores it frozen, and runs it once the source is released.

mod next;
#[cfg(test)]
mod tests;

pub use next::next;

use super::{Decision, Fence, Terms};
use jiff::Timestamp;
use portolan_api::livemigration::MigrationOrder;
use serde::{Deserialize, Serialize};

/// How far the destination is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DestinationGoal {
    /// Have the pod created, with its volumes and its room, waiting for its checkpoint.
    Prepared,
    /// Take the checkpoint, and in order DeleteFirst keep it until the coordinator decides.
    Received,
    /// Restore the pod frozen, and check it.
    Verified,
    /// Run the pod: the source is released.
    Running,
    /// Delete the pod, unless it may have run.
    Discarded,
    /// Forget the session, which is over.
    Forgotten,
}

/// How far the destination is. Each stage is written before what it names is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DestinationStage {
    /// The pod is being created; its containers wait for the checkpoint.
    Preparing,
    /// It waits.
    Prepared,
    /// The checkpoint is arriving.
    Receiving,
    /// All of it has arrived, as it was sent.
    Received,
    /// The containers are being restored and stay frozen.
    Restoring,
    /// The restored containers are there, checked and frozen.
    Verified,
    /// The pod is being set going.
    Thawing,
    /// The pod runs here, or has run.
    Running,
    /// The pod is being deleted.
    Discarding,
    /// It is gone and has never run.
    Discarded,
}

impl DestinationStage {
    /// Whether the pod may have run here.
    #[must_use]
    pub fn may_have_run(self) -> bool {
        matches!(self, Self::Thawing | Self::Running)
    }
}

/// What the agent at the destination has on its disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DestinationRecord {
    /// The attempt.
    #[serde(flatten)]
    pub fence: Fence,
    /// The terms it began with.
    pub terms: Terms,
    /// How far it is.
    pub stage: DestinationStage,
    /// When it began, by the clock of this node.
    pub prepared_at: Timestamp,
    /// Whether the source may already be released, so that only the coordinator may give up.
    #[serde(default)]
    pub bound: bool,
    /// What went wrong last, if anything did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl DestinationRecord {
    /// From which stage on the source may be released.
    fn binds_at(&self) -> DestinationStage {
        match self.terms.order {
            MigrationOrder::Transactional => DestinationStage::Verified,
            MigrationOrder::DeleteFirst => DestinationStage::Receiving,
        }
    }
}

/// The pod at the destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// There is none.
    None,
    /// It is being created, or being deleted.
    Changing,
    /// Its containers wait for the checkpoint.
    Waiting,
    /// Its containers are being restored.
    Restoring,
    /// All its containers are restored, checked and frozen; not an instruction of them has run. Once the thaw has begun:
    /// some of them are still frozen.
    Frozen,
    /// It runs.
    Running,
    /// It cannot be created or restored.
    Failed(String),
}

/// The checkpoint in the store of the destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// There is none, or a part of it.
    Incomplete,
    /// It is complete and its sums are right, whether a restore has taken it or not.
    Complete,
    /// It is not what was sent, or is refused.
    Refused(String),
}

/// What the agent at the destination sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestinationSeen {
    /// The pod that was created for this migration.
    pub target: Target,
    /// The checkpoint.
    pub data: Data,
    /// Whether the containers are marked as live: from then on they may have run, and their checkpoint must never be used
    /// again.
    pub live: bool,
    /// Whether the API server says that the migration is committed, without which the pod gets no traffic, or there is no pod
    /// any more that it could say that of.
    pub committed: bool,
    /// Whether the store holds anything of this migration, except for that mark.
    pub has_files: bool,
}

/// What the agent at the destination does next. Every action can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestinationAction {
    /// Create the pod.
    CreatePod,
    /// Let the source send; what has arrived stays.
    Receive,
    /// Remove what has arrived, because it is refused.
    RemoveCheckpoint,
    /// Let the waiting containers be restored from the checkpoint and stay frozen. One that was restored before and died
    /// frozen is restored from it again.
    Restore,
    /// Mark the containers as live, be sure that it is on the disk, and set all of them going at one instant.
    Thaw,
    /// Have the API server say that the migration is committed.
    MarkCommitted,
    /// Delete the pod. Its frozen processes are killed without a thaw.
    DeletePod,
    /// Remove what the store holds of this migration.
    RemoveFiles,
}

/// The next step of the destination.
pub type DestinationDecision = Decision<DestinationRecord, DestinationAction, DestinationStage>;
