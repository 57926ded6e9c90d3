//! The next step of the agent at the destination.

use super::{
    Data, DestinationAction, DestinationDecision, DestinationGoal, DestinationRecord, DestinationSeen,
    DestinationStage, Target,
};
use crate::migration::fence::Admission;
use crate::migration::{Decision, DestinationOrder, Fence, Report, Write};
use jiff::{SignedDuration, Timestamp};

/// What the agent does next. `order` is the latest order that has arrived, if one has since the agent was started;
/// `session` is a number that was never used before; `now` is the clock of the node.
#[must_use]
pub fn next(
    record: Option<&DestinationRecord>,
    order: Option<&DestinationOrder>,
    seen: &DestinationSeen,
    session: u64,
    now: Timestamp,
) -> DestinationDecision {
    let Some(old) = record else { return without_record(order, seen, session, now) };
    let mut record = old.clone();
    let goal = match record.fence.admit(order) {
        // An order that does not know the session can only prepare, which is under way, or give up.
        Admission::Goal { goal, knows_session } if knows_session || goal == DestinationGoal::Discarded => {
            Some(goal)
        }
        Admission::Goal { .. } | Admission::None => None,
        Admission::Answer(report) => {
            let mut decision = step(old, record, None, seen, now);
            decision.report = Some(report);
            return decision;
        }
    };
    step(old, record, goal, seen, now)
}

fn without_record(
    order: Option<&DestinationOrder>,
    seen: &DestinationSeen,
    session: u64,
    now: Timestamp,
) -> DestinationDecision {
    let Some(order) = order else { return Decision::only(None) };
    if order.goal != DestinationGoal::Prepared || order.session.is_some() {
        let migration = order.migration.clone();
        return Decision::only(Some(Report::NoRecord { migration, session: order.session }));
    }
    // The pod of a session that is over runs, and belongs to its users: an order that comes late must not touch it.
    if seen.target != Target::None {
        let reason = "the pod of an earlier session of this migration is still there".to_owned();
        return Decision::only(Some(Report::Refused { migration: order.migration.clone(), reason }));
    }
    let record = DestinationRecord {
        fence: Fence { migration: order.migration.clone(), session, token: order.token },
        terms: order.terms,
        stage: DestinationStage::Preparing,
        prepared_at: now,
        bound: false,
        failure: None,
    };
    let report = Some(record.fence.report(record.stage, None));
    Decision { write: Write::Put(record), actions: Vec::new(), report }
}

/// What follows for a record: the next stage, what to do, or that it is over.
enum Next {
    Stay(Vec<DestinationAction>),
    Enter(DestinationStage),
    /// It went wrong: give up, or, if only the coordinator may give up, go back to this stage and do this.
    Fail(String, DestinationStage, Option<DestinationAction>),
    /// The pod is to be created once more, for this reason. What has arrived stays.
    Again(String),
    /// It must not be used, whoever decides.
    Discard(String),
    Forget,
}

fn step(
    old: &DestinationRecord,
    mut record: DestinationRecord,
    goal: Option<DestinationGoal>,
    seen: &DestinationSeen,
    now: Timestamp,
) -> DestinationDecision {
    let mut actions = Vec::new();
    match follow(&record, goal, seen, is_over(&record, now)) {
        Next::Stay(wanted) => actions = wanted,
        Next::Enter(stage) => {
            record.stage = stage;
            if matches!(stage, DestinationStage::Received | DestinationStage::Verified) {
                record.failure = None;
            }
        }
        Next::Fail(why, back, repair) => {
            record.stage = if record.bound { back } else { DestinationStage::Discarding };
            record.failure = Some(why);
            actions.extend(repair.filter(|_| record.bound));
        }
        Next::Again(why) => {
            record.stage = DestinationStage::Preparing;
            record.failure = Some(why);
            actions.push(DestinationAction::DeletePod);
        }
        Next::Discard(why) => {
            record.stage = DestinationStage::Discarding;
            record.failure = Some(why);
        }
        Next::Forget => return Decision { write: Write::Remove, actions, report: None },
    }
    let alive = record.stage < DestinationStage::Discarding;
    record.bound = record.bound || (alive && record.stage >= record.binds_at());
    let report = Some(record.fence.report(record.stage, record.failure.as_ref()));
    let write = if record == *old { Write::Nothing } else { Write::Put(record) };
    Decision { write, actions, report }
}

/// Whether its time is over. A clock that was set back says nothing, and then the wait must not be endless.
fn is_over(record: &DestinationRecord, now: Timestamp) -> bool {
    let passed = now.duration_since(record.prepared_at);
    passed < SignedDuration::ZERO || passed.unsigned_abs() >= record.terms.timeout.0
}

fn follow(
    record: &DestinationRecord,
    goal: Option<DestinationGoal>,
    seen: &DestinationSeen,
    outlived: bool,
) -> Next {
    use DestinationStage::{
        Discarded, Discarding, Prepared, Preparing, Received, Receiving, Restoring, Running, Thawing,
        Verified,
    };
    if record.stage < Thawing {
        // Forgotten before it ran: a late order had begun the session when the migration was already over.
        if matches!(goal, Some(DestinationGoal::Discarded | DestinationGoal::Forgotten)) {
            return Next::Enter(Discarding);
        }
        if seen.target == Target::Running {
            return Next::Discard("the restored pod ran before the commit".to_owned());
        }
        if outlived && !record.bound {
            let limit = record.terms.timeout.0.as_millis();
            return Next::Discard(format!("the migration did not come to its commit within {limit} ms"));
        }
    }
    let stay = |action| Next::Stay(vec![action]);
    match record.stage {
        Preparing | Prepared | Receiving | Received => match &seen.target {
            Target::Failed(why) if record.stage == Preparing => {
                let why = format!("the pod cannot be created: {why}");
                Next::Fail(why, record.stage, Some(DestinationAction::DeletePod))
            }
            // It did wait. A kubelet does not let a container wait for as long as a transfer may take.
            Target::Failed(why) => Next::Again(format!("the pod could not wait for its checkpoint: {why}")),
            Target::None if record.stage == Preparing || record.bound => stay(DestinationAction::CreatePod),
            Target::None => Next::Discard("somebody else has deleted the pod".to_owned()),
            Target::Waiting => waiting(record.stage, goal, &seen.data),
            _ => Next::Stay(Vec::new()),
        },
        Restoring => match &seen.target {
            Target::Frozen => Next::Enter(Verified),
            Target::Failed(why) => {
                let why = format!("the pod cannot be restored: {why}");
                match seen.data {
                    Data::Complete => Next::Fail(why, Restoring, Some(DestinationAction::Restore)),
                    Data::Incomplete | Data::Refused(_) => Next::Fail(why, Receiving, None),
                }
            }
            Target::None if record.bound => stay(DestinationAction::CreatePod),
            Target::None => Next::Discard("somebody else has deleted the pod".to_owned()),
            Target::Waiting if seen.data != Data::Complete => Next::Enter(Receiving),
            Target::Waiting => stay(DestinationAction::Restore),
            Target::Changing | Target::Restoring | Target::Running => Next::Stay(Vec::new()),
        },
        Verified if seen.target != Target::Frozen => {
            Next::Fail("the restored pod died while it was frozen".to_owned(), Restoring, None)
        }
        Verified if goal == Some(DestinationGoal::Running) => Next::Enter(Thawing),
        Verified => Next::Stay(Vec::new()),
        Thawing if seen.target == Target::Frozen => stay(DestinationAction::Thaw),
        Thawing if !seen.live && seen.target != Target::Running => {
            Next::Fail("the restored pod died before it was thawed".to_owned(), Restoring, None)
        }
        // Whatever else it is, it may have run; what dies from now on is started afresh by its cluster.
        Thawing => Next::Enter(Running),
        // Nobody else does it once the session is forgotten.
        Running if !seen.committed => stay(DestinationAction::MarkCommitted),
        Running if goal == Some(DestinationGoal::Forgotten) && seen.has_files => {
            stay(DestinationAction::RemoveFiles)
        }
        Running if goal == Some(DestinationGoal::Forgotten) => Next::Forget,
        Discarded if goal == Some(DestinationGoal::Forgotten) || outlived => Next::Forget,
        Discarding if seen.target != Target::None => stay(DestinationAction::DeletePod),
        Discarding if seen.has_files => stay(DestinationAction::RemoveFiles),
        Discarding => Next::Enter(Discarded),
        Running | Discarded => Next::Stay(Vec::new()),
    }
}

/// The next step while the containers wait for the checkpoint.
fn waiting(stage: DestinationStage, goal: Option<DestinationGoal>, data: &Data) -> Next {
    use DestinationStage::{Prepared, Preparing, Received, Receiving, Restoring};
    let goal = goal.filter(|goal| *goal <= DestinationGoal::Running);
    match (stage, data) {
        (Preparing, _) => Next::Enter(Prepared),
        (Prepared, _) if goal >= Some(DestinationGoal::Received) => Next::Enter(Receiving),
        (Receiving, Data::Complete) => Next::Enter(Received),
        (Receiving, Data::Incomplete) => Next::Stay(vec![DestinationAction::Receive]),
        (Receiving, Data::Refused(why)) => {
            let why = format!("the checkpoint is refused: {why}");
            Next::Fail(why, Receiving, Some(DestinationAction::RemoveCheckpoint))
        }
        (Received, Data::Complete) if goal >= Some(DestinationGoal::Verified) => Next::Enter(Restoring),
        (Received, Data::Incomplete | Data::Refused(_)) => Next::Enter(Receiving),
        _ => Next::Stay(Vec::new()),
    }
}
