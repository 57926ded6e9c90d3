//! What the sessions of both roles have in common.

use super::jobs::Outcome;
use super::{HandsError, Pod, Role, SessionInfo};
use portolan_core::migration::{Decision, Fence, Order, Progress, Report, Terms};
use portolan_runtime::Clock;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;

/// What one side decides.
pub(super) type SideDecision<S> = Decision<<S as Side>::Record, <S as Side>::Action, <S as Side>::Stage>;

/// One side of a migration: its pure machine, and the hands that it moves.
pub(super) trait Side: Sized + Send + Sync + 'static {
    const ROLE: Role;
    type Goal: Copy + Debug + Send + Sync + 'static;
    type Stage: Copy + Debug + Send + Sync + 'static;
    type Record: Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static;
    type Action: Copy + Debug + PartialEq + Send + Sync + 'static;
    type Seen: Send + Sync;
    /// What a session remembers of its long actions until the agent dies.
    type Memory: Default + Send + Sync;

    /// Refuses a pod with which this cannot be done.
    fn check(&self, info: &SessionInfo) -> impl Future<Output = Result<(), HandsError>> + Send;

    fn baseline(&self, pod: &Pod) -> impl Future<Output = Result<String, HandsError>> + Send;

    fn look(
        &self,
        info: &SessionInfo,
        memory: &Self::Memory,
    ) -> impl Future<Output = Result<Self::Seen, HandsError>> + Send;

    fn act(
        &self,
        action: Self::Action,
        info: &SessionInfo,
    ) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// Removes what is left of all migrations but these.
    fn remove_ended(&self, kept: &BTreeSet<String>) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// The pure machine.
    fn next(
        record: Option<&Self::Record>,
        order: Option<&Order<Self::Goal>>,
        seen: &Self::Seen,
        session: u64,
        clock: &Clock,
    ) -> SideDecision<Self>;

    /// A pod with which nothing has been done yet.
    fn untouched() -> Self::Seen;

    /// What to take for granted of a pod that cannot be looked at. Only a decision that gives up follows from it.
    fn unseen(record: &Self::Record) -> Option<Self::Seen>;

    fn fence(record: &Self::Record) -> &Fence;
    fn terms(record: &Self::Record) -> Terms;
    fn stage(record: &Self::Record) -> Self::Stage;
    fn failure(record: &mut Self::Record) -> &mut Option<String>;

    /// Whether an order with this goal gives up, and so counts without the session's number.
    fn is_abort(goal: Self::Goal) -> bool;

    /// Ends once something has happened that a look shows. May be dropped at any point.
    fn changed(&self, info: &SessionInfo) -> impl Future<Output = ()> + Send;

    /// Whether the pod stands still for what takes milliseconds and is only seen by looks.
    fn is_brief(record: &Self::Record) -> bool;

    /// Whether the record is the one of a source that gives up.
    fn is_undoing(record: &Self::Record) -> bool;

    /// Whether the record is the one of a source that never runs again.
    fn is_committed(record: &Self::Record) -> bool;

    /// The record of a pod that stands still and that the commit has not been written for: it gives up.
    fn undo(record: &Self::Record, why: &str) -> Option<Self::Record>;

    /// What sets the pod going again.
    fn thaw() -> Option<Self::Action>;

    /// Whether the action runs in the background.
    fn is_long(action: Self::Action) -> bool;

    /// Whether a long action may go on at the stage of this record.
    fn may_run(record: &Self::Record, action: Self::Action) -> bool;

    fn started(memory: &mut Self::Memory, action: Self::Action);
    fn ended(memory: &mut Self::Memory, action: Self::Action, outcome: Outcome);

    /// How long the pod may still stand still, if it must not for ever.
    fn time_left(record: &Self::Record, clock: &Clock) -> Option<Duration>;

    /// The report about a record.
    fn report(record: &Self::Record) -> Report<Self::Stage> {
        let fence = Self::fence(record);
        Report::Progress(Progress {
            migration: fence.migration.clone(),
            session: fence.session,
            token: fence.token,
            stage: Self::stage(record),
            failure: Self::failure(&mut record.clone()).take(),
        })
    }
}
