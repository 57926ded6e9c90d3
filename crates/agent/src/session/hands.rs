//! What sessions do to pods, one function for each action of the pure machines.
//!
//! Every action may be repeated after a crash at any point of it, and must come to the same end. One session does one action
//! at a time, except for the long ones: [`SourceHands::write_checkpoint`] and [`SourceHands::send`] run in the background.
//! They are stopped by dropping their future, at any point; what they have started must end with them. All others end by
//! themselves within seconds: they are waited for, and meanwhile no order is taken.

use super::Pod;
use portolan_core::migration::Terms;
use portolan_core::migration::destination::DestinationSeen;
use portolan_core::migration::source::Frozen;
use std::collections::BTreeSet;
use std::fmt::Display;

/// Why an action fails: a sentence that users read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HandsError {
    message: String,
    refusal: bool,
}

impl HandsError {
    /// An error with this message.
    #[must_use]
    pub fn new(message: impl Display) -> Self {
        Self { message: message.to_string(), refusal: false }
    }

    /// An error with this message, of something that fails in the same way until somebody changes the pod or the node.
    #[must_use]
    pub fn refusal(message: impl Display) -> Self {
        Self { message: message.to_string(), refusal: true }
    }

    /// Whether another try would fail in the same way.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        self.refusal
    }
}

/// The session that an action is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// The pod.
    pub pod: Pod,
    /// The UID of the LiveMigration.
    pub migration: String,
    /// The number of the session.
    pub session: u64,
    /// The terms it began with.
    pub terms: Terms,
    /// What [`SourceHands::baseline`] said when it began; empty at the destination.
    pub baseline: String,
}

/// What there is of a pod at the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLook {
    /// Whether the pod is gone: no process and no cgroup of it is left.
    pub gone: bool,
    /// What of the pod stands still.
    pub frozen: Frozen,
    /// A container is not the one of the baseline: this says which one.
    pub replaced: Option<String>,
    /// Whether the pod is known to be marked for deletion; not if the API server does not answer.
    pub terminating: bool,
    /// Whether the store holds a complete checkpoint of this session.
    pub checkpoint: bool,
    /// Whether the store holds anything of this migration.
    pub has_files: bool,
}

/// What is done at the source.
pub trait SourceHands: Send + Sync + 'static {
    /// Refuses a pod that cannot be moved while it runs, before anything is done for that.
    fn check(&self, session: &SessionInfo) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// What tells later whether a container was replaced: the IDs of the containers, as text of a few KiB.
    fn baseline(&self, pod: &Pod) -> impl Future<Output = Result<String, HandsError>> + Send;

    /// Looks at the pod and at the store. It does not need the API server. May be dropped at any point.
    fn look(&self, session: &SessionInfo) -> impl Future<Output = Result<SourceLook, HandsError>> + Send;

    /// Freezes every container at one instant.
    fn freeze(&self, session: &SessionInfo) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// Writes every container down, while it stays frozen. What is left of an earlier try is replaced, also a complete
    /// checkpoint. Long.
    fn write_checkpoint(&self, session: &SessionInfo) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// Sends what is not yet at the destination; succeeds when the destination says that it has all of it. Long.
    fn send(&self, session: &SessionInfo) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// Marks the pod for deletion.
    fn mark_for_deletion(&self, session: &SessionInfo)
    -> impl Future<Output = Result<(), HandsError>> + Send;

    /// Kills the frozen processes, without a thaw before.
    fn kill(&self, session: &SessionInfo) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// Ends what still writes the checkpoint, also of an agent that died, then sets all containers going at one instant.
    fn thaw(&self, session: &SessionInfo) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// Removes what the store holds of this migration.
    fn remove_files(&self, session: &SessionInfo) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// Removes what the store holds of all migrations but these, whose sessions go on after the agent was started.
    fn remove_ended(&self, kept: &BTreeSet<String>) -> impl Future<Output = Result<(), HandsError>> + Send;
}

/// What is done at the destination.
pub trait DestinationHands: Send + Sync + 'static {
    /// Refuses a pod that cannot be restored here, before anything is done for that.
    fn check(&self, session: &SessionInfo) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// Looks at the pod and at the store. May be dropped at any point.
    fn look(&self, session: &SessionInfo)
    -> impl Future<Output = Result<DestinationSeen, HandsError>> + Send;

    /// Ends once something has happened that a look shows, such as that the checkpoint has arrived: it is not only found out by the
    /// next look. May be dropped at any point.
    fn changed(&self, session: &SessionInfo) -> impl Future<Output = ()> + Send;

    /// Creates the pod, whose containers wait for the checkpoint.
    fn create_pod(&self, session: &SessionInfo) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// Lets the source send; what has arrived stays. It ends when the source may send, not when it has sent.
    fn receive(&self, session: &SessionInfo) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// Removes what has arrived, because it is refused.
    fn remove_checkpoint(&self, session: &SessionInfo)
    -> impl Future<Output = Result<(), HandsError>> + Send;

    /// Lets the waiting containers be restored and stay frozen. It ends when they may be, not when they are.
    fn restore(&self, session: &SessionInfo) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// Marks the containers as live, is sure that it is on the disk, and sets all of them going at one instant.
    fn thaw(&self, session: &SessionInfo) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// Has the API server say that the migration is committed: before that, the pod is not Ready.
    fn mark_committed(&self, session: &SessionInfo) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// Deletes the pod. Its frozen processes are killed without a thaw.
    fn delete_pod(&self, session: &SessionInfo) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// Removes what the store holds of this migration.
    fn remove_files(&self, session: &SessionInfo) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// Removes what the store holds of all migrations but these, whose sessions go on after the agent was started. What says that a
    /// pod is live stays as long as the pod.
    fn remove_ended(&self, kept: &BTreeSet<String>) -> impl Future<Output = Result<(), HandsError>> + Send;
}
