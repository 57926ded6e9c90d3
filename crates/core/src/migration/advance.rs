//! The coordinator's plan: from the record and the facts to the next record.

use super::destination::DestinationStage;
use super::rollback::{give_up, is_over, reason_to_give_up};
use super::sides::{Sides, sides};
use super::source::SourceStage;
use super::{AbortCause, Answer, Facts, Outcome, Plan, Record, Step, orders};
use jiff::Timestamp;
use portolan_api::livemigration::MigrationOrder;

/// No plan passes more steps than there are.
const STEPS: usize = 16;

/// Plans the next step: the record to be written, and the orders that follow from it.
///
/// Facts may be of the past. The record is written by compare-and-swap before the orders go out; if that fails, no order
/// goes out and the plan is made again.
#[must_use]
pub fn plan(record: &Record, facts: &Facts, now: Timestamp) -> Plan {
    let mut record = record.clone();
    for _ in 0..STEPS {
        if !advance(&mut record, facts, now) {
            break;
        }
    }
    let orders = orders(&record);
    Plan { record, orders }
}

/// Takes one step if it can be taken. Whether it was.
fn advance(record: &mut Record, facts: &Facts, now: Timestamp) -> bool {
    let sides = sides(record, facts);
    if sides.destination.is_some_and(|destination| destination.stage == DestinationStage::Running) {
        record.running_since.get_or_insert(now);
    }
    if !record.released {
        record.released = sides.source.is_some_and(|source| source.stage.is_released());
        if record.released && record.step >= Step::ThawSource {
            // The wish to give up came after the commit: there is only the way forward.
            record.abort = None;
            record.enter(Step::DeleteSource, now);
            return true;
        }
        if record.step < Step::ThawSource
            && !record.released
            && let Some((cause, message)) = reason_to_give_up(record, facts, &sides, now)
        {
            give_up(record, cause, message, now);
            return true;
        }
    }
    let Some(next) = next(record, facts, &sides, now) else { return false };
    record.enter(next, now);
    true
}

/// The step to enter, if the present one is done.
fn next(record: &mut Record, facts: &Facts, sides: &Sides<'_>, now: Timestamp) -> Option<Step> {
    let order = record.terms.order;
    let source_is_clean = facts.source.is_clean(&record.migration, record.source_session);
    let destination_is_clean = record.entered_at(Step::Prepare).is_none()
        || facts.destination.is_clean(&record.migration, record.destination_session);
    let source_is_deleted = sides.source_is_at(SourceStage::Deleted) || source_is_clean;
    let runs = record.running_since.is_some();
    if record.released && record.step < Step::ThawSource && source_is_deleted && !runs {
        let over = order == MigrationOrder::DeleteFirst && is_over(record, now);
        if over || sides.destination_gave_up() || destination_is_clean {
            record.outcome = Some(Outcome::Lost);
            return Some(Step::DiscardDestination);
        }
    }
    let done = match record.step {
        Step::Reserve => sides.source_is_at(SourceStage::Reserved),
        Step::Prepare => {
            sides.source_is_at(SourceStage::Reserved) && sides.destination_is_at(DestinationStage::Prepared)
        }
        Step::Freeze => sides.source_is_at(SourceStage::Checkpointing),
        Step::Checkpoint => {
            sides.source_is_at(SourceStage::Checkpointed)
                // In order DeleteFirst the source is released next: the destination must not give up by itself then.
                && (order == MigrationOrder::Transactional
                    || sides.destination_is_at(DestinationStage::Receiving))
        }
        Step::Transfer => sides.destination_is_at(DestinationStage::Received),
        Step::Restore => sides.destination_is_at(DestinationStage::Verified),
        Step::Verify => match order {
            MigrationOrder::Transactional => sides.destination_is_at(DestinationStage::Verified),
            MigrationOrder::DeleteFirst => runs,
        },
        Step::Commit => record.released,
        Step::DeleteSource => source_is_deleted && (order == MigrationOrder::DeleteFirst || runs),
        Step::ThawSource => {
            sides.source.is_some_and(|source| source.stage == SourceStage::Aborted) || source_is_clean
        }
        Step::DiscardDestination => {
            runs && record.released
                || sides.destination.is_some_and(|side| side.stage == DestinationStage::Discarded)
                || destination_is_clean
        }
        Step::Clean => source_is_clean && destination_is_clean,
        Step::Done => return None,
    };
    if !done {
        return None;
    }
    let next = record.step.after(order);
    match record.step {
        Step::ThawSource => record.outcome = Some(rolled_back(record, facts)),
        Step::DiscardDestination if runs && record.released => record.outcome = Some(Outcome::Succeeded),
        _ if next == Step::Clean && record.outcome.is_none() => record.outcome = Some(Outcome::Succeeded),
        _ => {}
    }
    Some(next)
}

/// How a migration ends whose source was not released.
fn rolled_back(record: &Record, facts: &Facts) -> Outcome {
    if facts.source == Answer::ConfirmedLost {
        return Outcome::Lost;
    }
    match record.abort.as_ref().map(|abort| abort.cause) {
        Some(AbortCause::Requested) => Outcome::Aborted,
        _ => Outcome::Failed,
    }
}
