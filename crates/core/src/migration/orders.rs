//! What each side is to do: it follows from the record alone, so nothing is ordered that is not written down.

use super::destination::DestinationGoal;
use super::source::SourceGoal;
use super::{DestinationOrder, Order, Record, SourceOrder, Step};
use portolan_api::livemigration::MigrationOrder;

/// The orders to both sides. They are repeated until the record is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orders {
    /// What the source is to do, if anything.
    pub source: Option<SourceOrder>,
    /// What the destination is to do, if anything.
    pub destination: Option<DestinationOrder>,
}

/// The orders that follow from a record.
#[must_use]
pub fn orders(record: &Record) -> Orders {
    Orders {
        source: source_goal(record).map(|goal| order(record, record.source_session, goal)),
        destination: destination_goal(record).map(|goal| order(record, record.destination_session, goal)),
    }
}

fn order<Goal>(record: &Record, session: Option<u64>, goal: Goal) -> Order<Goal> {
    let migration = record.migration.clone();
    Order { migration, session, token: record.token, terms: record.terms, goal }
}

fn source_goal(record: &Record) -> Option<SourceGoal> {
    match record.step {
        Step::Reserve | Step::Prepare => Some(SourceGoal::Reserved),
        // A source that is released is told so again: it still sends and deletes.
        _ if record.released && record.step < Step::Clean => Some(SourceGoal::Released),
        Step::Freeze | Step::Checkpoint | Step::Transfer | Step::Restore | Step::Verify => {
            Some(SourceGoal::Sent)
        }
        Step::Commit | Step::DeleteSource => Some(SourceGoal::Released),
        Step::ThawSource | Step::DiscardDestination => Some(SourceGoal::Aborted),
        Step::Clean if record.source_session.is_some() => Some(SourceGoal::Forgotten),
        Step::Clean => Some(SourceGoal::Aborted),
        Step::Done => None,
    }
}

fn destination_goal(record: &Record) -> Option<DestinationGoal> {
    let delete_first = record.terms.order == MigrationOrder::DeleteFirst;
    record.entered_at(Step::Prepare)?;
    match record.step {
        Step::Reserve => None,
        Step::Prepare => Some(DestinationGoal::Prepared),
        Step::Freeze | Step::Checkpoint | Step::Commit | Step::DeleteSource | Step::Transfer
            if delete_first =>
        {
            Some(DestinationGoal::Received)
        }
        _ if record.released && record.step < Step::ThawSource => Some(DestinationGoal::Running),
        Step::Freeze
        | Step::Checkpoint
        | Step::Transfer
        | Step::Restore
        | Step::Verify
        | Step::Commit
        | Step::DeleteSource => Some(DestinationGoal::Verified),
        // As long as the source may be released, the pod at the destination may be the only one.
        Step::ThawSource if record.may_be_released() => None,
        Step::ThawSource | Step::DiscardDestination => Some(DestinationGoal::Discarded),
        Step::Clean if record.destination_session.is_some() => Some(DestinationGoal::Forgotten),
        Step::Clean => Some(DestinationGoal::Discarded),
        Step::Done => None,
    }
}
