//! The side of the destination.

use super::jobs::Outcome;
use super::side::{Side, SideDecision};
use super::{DestinationHands, HandsError, Pod, Role, SessionInfo};
use portolan_core::migration::destination::{
    Data, DestinationAction, DestinationGoal, DestinationRecord, DestinationSeen, DestinationStage, Target,
    next,
};
use portolan_core::migration::{DestinationOrder, Fence, Terms};
use portolan_runtime::Clock;
use std::collections::BTreeSet;
use std::time::Duration;

/// The destination, with the hands that it moves.
#[derive(Debug)]
pub(super) struct Destination<H> {
    hands: H,
}

impl<H> Destination<H> {
    pub(super) fn new(hands: H) -> Self {
        Self { hands }
    }
}

impl<H: DestinationHands> Side for Destination<H> {
    const ROLE: Role = Role::Destination;
    type Goal = DestinationGoal;
    type Stage = DestinationStage;
    type Record = DestinationRecord;
    type Action = DestinationAction;
    type Seen = DestinationSeen;
    type Memory = ();

    async fn check(&self, info: &SessionInfo) -> Result<(), HandsError> {
        self.hands.check(info).await
    }

    async fn baseline(&self, _pod: &Pod) -> Result<String, HandsError> {
        Ok(String::new())
    }

    async fn look(&self, info: &SessionInfo, _memory: &()) -> Result<DestinationSeen, HandsError> {
        self.hands.look(info).await
    }

    async fn act(&self, action: DestinationAction, info: &SessionInfo) -> Result<(), HandsError> {
        match action {
            DestinationAction::CreatePod => self.hands.create_pod(info).await,
            DestinationAction::Receive => self.hands.receive(info).await,
            DestinationAction::RemoveCheckpoint => self.hands.remove_checkpoint(info).await,
            DestinationAction::Restore => self.hands.restore(info).await,
            DestinationAction::Thaw => self.hands.thaw(info).await,
            DestinationAction::MarkCommitted => self.hands.mark_committed(info).await,
            DestinationAction::DeletePod => self.hands.delete_pod(info).await,
            DestinationAction::RemoveFiles => self.hands.remove_files(info).await,
        }
    }

    async fn remove_ended(&self, kept: &BTreeSet<String>) -> Result<(), HandsError> {
        self.hands.remove_ended(kept).await
    }

    fn next(
        record: Option<&DestinationRecord>,
        order: Option<&DestinationOrder>,
        seen: &DestinationSeen,
        session: u64,
        clock: &Clock,
    ) -> SideDecision<Self> {
        next(record, order, seen, session, clock.now())
    }

    fn untouched() -> DestinationSeen {
        let (target, data) = (Target::None, Data::Incomplete);
        DestinationSeen { target, data, live: false, committed: true, has_files: false }
    }

    fn unseen(_record: &DestinationRecord) -> Option<DestinationSeen> {
        // No pod of a user stands still because the destination waits.
        None
    }

    fn fence(record: &DestinationRecord) -> &Fence {
        &record.fence
    }

    fn terms(record: &DestinationRecord) -> Terms {
        record.terms
    }

    fn stage(record: &DestinationRecord) -> DestinationStage {
        record.stage
    }

    fn failure(record: &mut DestinationRecord) -> &mut Option<String> {
        &mut record.failure
    }

    fn is_abort(goal: DestinationGoal) -> bool {
        goal == DestinationGoal::Discarded
    }

    async fn changed(&self, info: &SessionInfo) {
        self.hands.changed(info).await;
    }

    fn is_brief(record: &DestinationRecord) -> bool {
        matches!(record.stage, DestinationStage::Restoring | DestinationStage::Thawing)
    }

    fn is_undoing(_record: &DestinationRecord) -> bool {
        false
    }

    fn is_committed(_record: &DestinationRecord) -> bool {
        false
    }

    fn undo(_record: &DestinationRecord, _why: &str) -> Option<DestinationRecord> {
        None
    }

    fn thaw() -> Option<DestinationAction> {
        // Without a record that says so, the pod is never set going here.
        None
    }

    fn is_long(_action: DestinationAction) -> bool {
        false
    }

    fn may_run(_record: &DestinationRecord, _action: DestinationAction) -> bool {
        false
    }

    fn started(_memory: &mut (), _action: DestinationAction) {}

    fn ended(_memory: &mut (), _action: DestinationAction, _outcome: Outcome) {}

    fn time_left(_record: &DestinationRecord, _clock: &Clock) -> Option<Duration> {
        None
    }
}
