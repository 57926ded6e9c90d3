//! The agent at the source: freezes the pod, writes it down, and releases it or sets it going again.

mod next;
#[cfg(test)]
mod tests;

pub use next::next;

use super::{Decision, Fence, Terms};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How far the source is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SourceGoal {
    /// Keep other migrations away from the pod.
    Reserved,
    /// Freeze the pod, write it down and send it.
    Sent,
    /// Never run the pod again, and delete it.
    Released,
    /// Set the pod going again, unless it is released.
    Aborted,
    /// Forget the session, which is over.
    Forgotten,
}

/// How far the source is. Each stage is written before what it names is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SourceStage {
    /// The pod runs, and is reserved for this migration.
    Reserved,
    /// Its containers are being frozen.
    Freezing,
    /// All of them are frozen and are being written down.
    Checkpointing,
    /// All of them are written down, and frozen until the commit or an abort.
    Checkpointed,
    /// The commit: the pod never runs here again. It is being marked for deletion, so that no container is started anew.
    Releasing,
    /// The pod is marked for deletion.
    Released,
    /// The pod is gone.
    Deleted,
    /// The pod is being thawed.
    Aborting,
    /// The pod runs on as if nothing had happened.
    Aborted,
}

impl SourceStage {
    /// Whether the pod never runs at the source again.
    #[must_use]
    pub fn is_committed(self) -> bool {
        matches!(self, Self::Releasing | Self::Released | Self::Deleted)
    }

    /// Whether the destination may be told to run the pod: no container can be started anew at the source either.
    pub(super) fn is_released(self) -> bool {
        matches!(self, Self::Released | Self::Deleted)
    }
}

/// What the agent at the source has on its disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceRecord {
    /// The attempt.
    #[serde(flatten)]
    pub fence: Fence,
    /// The terms it began with.
    pub terms: Terms,
    /// How far it is.
    pub stage: SourceStage,
    /// When the pod was reserved, by the clock of this node.
    pub reserved_at: Timestamp,
    /// When the freeze began, by the clock of this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen_at: Option<Timestamp>,
    /// What went wrong, if anything did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// What stands still of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frozen {
    /// Nothing: every container runs.
    None,
    /// Some containers, or all of them but not for certain.
    Partly,
    /// Every container.
    All,
}

/// The checkpoint in the store of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checkpoint {
    /// There is none.
    None,
    /// It is being written.
    Writing,
    /// It is complete, with the files of the pod that its deletion would take away.
    Complete,
    /// It cannot be written.
    Failed(String),
}

/// What the agent at the source sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSeen {
    /// Whether the pod is gone: no process and no cgroup of it is left.
    pub gone: bool,
    /// What of the pod stands still.
    pub frozen: Frozen,
    /// A container is not the one that was there at the beginning: this says which one.
    pub replaced: Option<String>,
    /// Whether the pod is marked for deletion.
    pub terminating: bool,
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Whether the destination has all of it, by its latest answer.
    pub sent: bool,
    /// Whether the store holds anything of this migration.
    pub has_files: bool,
}

/// What the agent at the source does next. Every action can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceAction {
    /// Freeze every container at one instant.
    Freeze,
    /// Write every container down, while it stays frozen. What is left of an earlier try is replaced.
    WriteCheckpoint,
    /// Send what is not yet at the destination.
    Send,
    /// Mark the pod for deletion.
    MarkForDeletion,
    /// Kill the frozen processes, without a thaw before.
    Kill,
    /// End what still writes the checkpoint, then set all containers going at one instant.
    Thaw,
    /// Remove what the store holds of this migration.
    RemoveFiles,
}

/// The next step of the source.
pub type SourceDecision = Decision<SourceRecord, SourceAction, SourceStage>;
