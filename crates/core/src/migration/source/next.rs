//! The next step of the agent at the source.

use super::{
    Checkpoint, Frozen, SourceAction, SourceDecision, SourceGoal, SourceRecord, SourceSeen, SourceStage,
};
use crate::migration::fence::Admission;
use crate::migration::{Decision, Fence, Report, SourceOrder, Write};
use jiff::{SignedDuration, Timestamp};
use portolan_api::Duration;

/// Why a source gives up whose containers do not stand still although they should.
const THAWED: &str = "somebody else has thawed the pod during its migration";

/// What the agent does next. `order` is the latest order that has arrived, if one has since the agent was started;
/// `session` is a number that was never used before; `now` is the clock of the node.
#[must_use]
pub fn next(
    record: Option<&SourceRecord>,
    order: Option<&SourceOrder>,
    seen: &SourceSeen,
    session: u64,
    now: Timestamp,
) -> SourceDecision {
    let Some(old) = record else { return without_record(order, seen, session, now) };
    let mut record = old.clone();
    let goal = match record.fence.admit(order) {
        // An order that does not know the session can only reserve, which is done, or give up.
        Admission::Goal { goal, knows_session } if knows_session || goal == SourceGoal::Aborted => Some(goal),
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
    order: Option<&SourceOrder>,
    seen: &SourceSeen,
    session: u64,
    now: Timestamp,
) -> SourceDecision {
    let Some(order) = order else { return Decision::only(None) };
    if order.goal != SourceGoal::Reserved || order.session.is_some() {
        let migration = order.migration.clone();
        return Decision::only(Some(Report::NoRecord { migration, session: order.session }));
    }
    if seen.gone {
        let (migration, reason) = (order.migration.clone(), "the pod does not run on this node".to_owned());
        return Decision::only(Some(Report::Refused { migration, reason }));
    }
    let record = SourceRecord {
        fence: Fence { migration: order.migration.clone(), session, token: order.token },
        terms: order.terms,
        stage: SourceStage::Reserved,
        reserved_at: now,
        frozen_at: None,
        failure: None,
    };
    let report = Some(record.fence.report(record.stage, None));
    Decision { write: Write::Put(record), actions: Vec::new(), report }
}

/// What follows for a record: the next stage, what to do, or that it is over.
enum Next {
    Stay(Vec<SourceAction>),
    Enter(SourceStage),
    GiveUp(String),
    Forget,
}

fn step(
    old: &SourceRecord,
    mut record: SourceRecord,
    goal: Option<SourceGoal>,
    seen: &SourceSeen,
    now: Timestamp,
) -> SourceDecision {
    // Of a session that only reserved or that was undone, nobody needs to know more after its time.
    let outlived = is_over(record.reserved_at, record.terms.timeout, now);
    let next = match frozen_too_long(&record, now) {
        Some(why) => Next::GiveUp(why),
        None if outlived && record.stage == SourceStage::Reserved => Next::Forget,
        None => follow(&record, goal, seen, outlived),
    };
    let mut actions = Vec::new();
    match next {
        Next::Stay(wanted) => actions = wanted,
        Next::Enter(stage) => {
            if stage == SourceStage::Freezing {
                record.frozen_at = Some(now);
            }
            record.stage = stage;
        }
        Next::GiveUp(why) => {
            record.stage = SourceStage::Aborting;
            record.failure.get_or_insert(why);
        }
        Next::Forget => return Decision { write: Write::Remove, actions, report: None },
    }
    // Not only after the next look, which may take its time. What a look says of a pod that is being written down does not
    // say how its freezer is left.
    let stood_still =
        matches!(old.stage, SourceStage::Freezing | SourceStage::Checkpointing | SourceStage::Checkpointed);
    if record.stage == SourceStage::Aborting && stood_still {
        actions.push(SourceAction::Thaw);
    }
    let report = Some(record.fence.report(record.stage, record.failure.as_ref()));
    let write = if record == *old { Write::Nothing } else { Write::Put(record) };
    Decision { write, actions, report }
}

/// Whether so long has passed. A clock that was set back says nothing, and then the wait must not be endless.
fn is_over(since: Timestamp, limit: Duration, now: Timestamp) -> bool {
    let passed = now.duration_since(since);
    passed < SignedDuration::ZERO || passed.unsigned_abs() >= limit.0
}

/// Why the source gives up without being asked to, if the pod has stood still for too long.
fn frozen_too_long(record: &SourceRecord, now: Timestamp) -> Option<String> {
    use SourceStage::{Checkpointed, Checkpointing, Freezing};
    let since = record.frozen_at?;
    let limit = record.terms.max_downtime;
    let holds = matches!(record.stage, Freezing | Checkpointing | Checkpointed);
    (holds && is_over(since, limit, now)).then(|| {
        format!(
            "the pod stood still for {} ms, and may for {} ms before the commit: raise limits.maxDowntime if its \
             probes endure more",
            now.duration_since(since).as_millis(),
            limit.0.as_millis()
        )
    })
}

fn follow(record: &SourceRecord, goal: Option<SourceGoal>, seen: &SourceSeen, outlived: bool) -> Next {
    use SourceStage::{
        Aborted, Aborting, Checkpointed, Checkpointing, Deleted, Freezing, Released, Releasing, Reserved,
    };
    if record.stage <= Checkpointed {
        // Forgotten before the commit: a late order had begun the session when the migration was already over.
        if matches!(goal, Some(SourceGoal::Aborted | SourceGoal::Forgotten)) {
            return Next::Enter(Aborting);
        }
        if let Some(why) = spoiled(seen) {
            return Next::GiveUp(why);
        }
    }
    let sends = matches!(goal, Some(SourceGoal::Sent | SourceGoal::Released)) && !seen.sent;
    let runs = seen.frozen != Frozen::All && !seen.gone;
    let also_send = |mut actions: Vec<SourceAction>| {
        actions.extend(sends.then_some(SourceAction::Send));
        Next::Stay(actions)
    };
    match record.stage {
        Reserved if sends => Next::Enter(Freezing),
        Reserved => Next::Stay(Vec::new()),
        Freezing if !runs => Next::Enter(Checkpointing),
        Freezing => Next::Stay(vec![SourceAction::Freeze]),
        Checkpointing => match &seen.checkpoint {
            // CRIU thaws the freezer of a container whose processes it has seized, and freezes it again at its end.
            Checkpoint::Writing => Next::Stay(Vec::new()),
            Checkpoint::Failed(why) => Next::GiveUp(format!("the checkpoint cannot be written: {why}")),
            // What is written of a pod that runs is not one instant of it.
            Checkpoint::None | Checkpoint::Complete if runs => Next::GiveUp(THAWED.to_owned()),
            Checkpoint::None => Next::Stay(vec![SourceAction::WriteCheckpoint]),
            Checkpoint::Complete => Next::Enter(Checkpointed),
        },
        Checkpointed if runs => Next::GiveUp(THAWED.to_owned()),
        Checkpointed if seen.checkpoint != Checkpoint::Complete => {
            Next::GiveUp("the checkpoint has disappeared from the store of the node".to_owned())
        }
        Checkpointed if goal == Some(SourceGoal::Released) => Next::Enter(Releasing),
        Checkpointed => also_send(Vec::new()),
        // That the pod is gone is not enough: after a reboot of the node its kubelet starts it afresh, unless it is marked.
        Releasing if seen.terminating => Next::Enter(Released),
        // Killed before it is marked for deletion, a container would be started anew.
        Releasing if runs => also_send(vec![SourceAction::Freeze, SourceAction::MarkForDeletion]),
        Releasing => also_send(vec![SourceAction::MarkForDeletion]),
        Released if seen.gone => Next::Enter(Deleted),
        Released => also_send(vec![SourceAction::Kill]),
        Aborting if seen.frozen != Frozen::None && !seen.gone => Next::Stay(vec![SourceAction::Thaw]),
        Aborting => Next::Enter(Aborted),
        // The pod runs again, or never stopped: the checkpoint is of the past and must not be used.
        Aborted if seen.has_files => Next::Stay(vec![SourceAction::RemoveFiles]),
        Aborted if goal == Some(SourceGoal::Forgotten) || outlived => Next::Forget,
        Deleted if goal == Some(SourceGoal::Forgotten) && seen.has_files => {
            Next::Stay(vec![SourceAction::RemoveFiles])
        }
        Deleted if goal == Some(SourceGoal::Forgotten) => Next::Forget,
        Deleted => also_send(Vec::new()),
        Aborted => Next::Stay(Vec::new()),
    }
}

/// Why the pod cannot be moved as it is, if something happened to it.
fn spoiled(seen: &SourceSeen) -> Option<String> {
    if seen.gone {
        return Some("the pod is gone".to_owned());
    }
    if seen.terminating {
        return Some("somebody else deletes the pod".to_owned());
    }
    let container = seen.replaced.as_ref()?;
    Some(format!("container {container} was started anew during the migration"))
}
