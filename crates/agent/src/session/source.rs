//! The side of the source.

use super::jobs::Outcome;
use super::side::{Side, SideDecision};
use super::{HandsError, Pod, Role, SessionInfo, SourceHands};
use portolan_core::migration::source::{
    Checkpoint, Frozen, SourceAction, SourceGoal, SourceRecord, SourceSeen, SourceStage, next,
};
use portolan_core::migration::{Fence, SourceOrder, Terms};
use portolan_runtime::Clock;
use std::collections::BTreeSet;
use std::future::pending;
use std::time::Duration;
use tokio::time::Instant;

/// After this time the destination is asked once more whether it has all of the checkpoint: it may have refused it since.
const SENT_FOR: Duration = Duration::from_secs(10);

/// The source, with the hands that it moves.
#[derive(Debug)]
pub(super) struct Source<H> {
    hands: H,
}

impl<H> Source<H> {
    pub(super) fn new(hands: H) -> Self {
        Self { hands }
    }
}

/// What is known of the long actions.
#[derive(Debug, Default)]
pub(super) struct SourceMemory {
    writing: bool,
    failed: Option<String>,
    sent_at: Option<Instant>,
}

impl<H: SourceHands> Side for Source<H> {
    const ROLE: Role = Role::Source;
    type Goal = SourceGoal;
    type Stage = SourceStage;
    type Record = SourceRecord;
    type Action = SourceAction;
    type Seen = SourceSeen;
    type Memory = SourceMemory;

    async fn check(&self, info: &SessionInfo) -> Result<(), HandsError> {
        self.hands.check(info).await
    }

    async fn baseline(&self, pod: &Pod) -> Result<String, HandsError> {
        self.hands.baseline(pod).await
    }

    async fn look(&self, info: &SessionInfo, memory: &SourceMemory) -> Result<SourceSeen, HandsError> {
        let look = self.hands.look(info).await?;
        let checkpoint = match &memory.failed {
            Some(why) => Checkpoint::Failed(why.clone()),
            None if memory.writing => Checkpoint::Writing,
            None if look.checkpoint => Checkpoint::Complete,
            None => Checkpoint::None,
        };
        Ok(SourceSeen {
            gone: look.gone,
            frozen: look.frozen,
            replaced: look.replaced,
            terminating: look.terminating,
            checkpoint,
            sent: memory.sent_at.is_some_and(|at| at.elapsed() < SENT_FOR),
            has_files: look.has_files,
        })
    }

    async fn act(&self, action: SourceAction, info: &SessionInfo) -> Result<(), HandsError> {
        match action {
            SourceAction::Freeze => self.hands.freeze(info).await,
            SourceAction::WriteCheckpoint => self.hands.write_checkpoint(info).await,
            SourceAction::Send => self.hands.send(info).await,
            SourceAction::MarkForDeletion => self.hands.mark_for_deletion(info).await,
            SourceAction::Kill => self.hands.kill(info).await,
            SourceAction::Thaw => self.hands.thaw(info).await,
            SourceAction::RemoveFiles => self.hands.remove_files(info).await,
        }
    }

    async fn remove_ended(&self, kept: &BTreeSet<String>) -> Result<(), HandsError> {
        self.hands.remove_ended(kept).await
    }

    fn next(
        record: Option<&SourceRecord>,
        order: Option<&SourceOrder>,
        seen: &SourceSeen,
        session: u64,
        clock: &Clock,
    ) -> SideDecision<Self> {
        next(record, order, seen, session, clock.now())
    }

    fn untouched() -> SourceSeen {
        SourceSeen {
            gone: false,
            frozen: Frozen::None,
            replaced: None,
            terminating: false,
            checkpoint: Checkpoint::None,
            sent: false,
            has_files: false,
        }
    }

    fn unseen(record: &SourceRecord) -> Option<SourceSeen> {
        // Whatever of it stands still is to be thawed, and nothing else is to follow.
        let undoing = Self::is_undoing(record);
        let complete = record.stage == SourceStage::Checkpointed;
        Some(SourceSeen {
            frozen: if undoing { Frozen::Partly } else { Frozen::All },
            checkpoint: if complete { Checkpoint::Complete } else { Checkpoint::Writing },
            sent: true,
            has_files: true,
            ..Self::untouched()
        })
    }

    fn fence(record: &SourceRecord) -> &Fence {
        &record.fence
    }

    fn terms(record: &SourceRecord) -> Terms {
        record.terms
    }

    fn stage(record: &SourceRecord) -> SourceStage {
        record.stage
    }

    fn failure(record: &mut SourceRecord) -> &mut Option<String> {
        &mut record.failure
    }

    fn is_abort(goal: SourceGoal) -> bool {
        goal == SourceGoal::Aborted
    }

    async fn changed(&self, _info: &SessionInfo) {
        // Its long actions wake it up when they end.
        pending().await
    }

    fn is_brief(record: &SourceRecord) -> bool {
        // The destination waits for the mark of a pod that is being released.
        matches!(record.stage, SourceStage::Freezing | SourceStage::Releasing)
    }

    fn is_undoing(record: &SourceRecord) -> bool {
        record.stage == SourceStage::Aborting
    }

    fn is_committed(record: &SourceRecord) -> bool {
        record.stage.is_committed()
    }

    fn undo(record: &SourceRecord, why: &str) -> Option<SourceRecord> {
        stands_still(record).then(|| {
            let mut record = record.clone();
            record.stage = SourceStage::Aborting;
            record.failure.get_or_insert_with(|| why.to_owned());
            record
        })
    }

    fn thaw() -> Option<SourceAction> {
        Some(SourceAction::Thaw)
    }

    fn is_long(action: SourceAction) -> bool {
        matches!(action, SourceAction::WriteCheckpoint | SourceAction::Send)
    }

    fn may_run(record: &SourceRecord, action: SourceAction) -> bool {
        use SourceStage::{Checkpointed, Checkpointing, Deleted, Released, Releasing};
        match action {
            SourceAction::WriteCheckpoint => record.stage == Checkpointing,
            SourceAction::Send => matches!(record.stage, Checkpointed | Releasing | Released | Deleted),
            _ => false,
        }
    }

    fn started(memory: &mut SourceMemory, action: SourceAction) {
        memory.writing |= action == SourceAction::WriteCheckpoint;
    }

    fn ended(memory: &mut SourceMemory, action: SourceAction, outcome: Outcome) {
        match (action, outcome) {
            (SourceAction::WriteCheckpoint, outcome) => {
                memory.writing = false;
                memory.failed = outcome.and_then(Result::err).map(|error| error.to_string());
            }
            (SourceAction::Send, Some(Ok(()))) => memory.sent_at = Some(Instant::now()),
            _ => {}
        }
    }

    fn time_left(record: &SourceRecord, clock: &Clock) -> Option<Duration> {
        if !stands_still(record) {
            return None;
        }
        let stood_still = clock.now().duration_since(record.frozen_at?);
        if stood_still.is_negative() {
            return Some(Duration::ZERO);
        }
        Some(record.terms.max_downtime.0.saturating_sub(stood_still.unsigned_abs()))
    }
}

/// Whether the pod stands still, or may, and is to go on some day.
fn stands_still(record: &SourceRecord) -> bool {
    use SourceStage::{Checkpointed, Checkpointing, Freezing};
    matches!(record.stage, Freezing | Checkpointing | Checkpointed)
}
