//! The steps of a migration, and their order.

use portolan_api::livemigration::MigrationOrder;
use serde::{Deserialize, Serialize};

/// The step that the coordinator is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Step {
    /// Reserve the pod at the source.
    Reserve,
    /// Reserve room and create the waiting pod at the destination.
    Prepare,
    /// Freeze the pod.
    Freeze,
    /// Write the frozen pod down.
    Checkpoint,
    /// Bring the checkpoint to the destination.
    Transfer,
    /// Restore the pod at the destination, frozen.
    Restore,
    /// Check that the pod is there: before the commit that it is whole, in order DeleteFirst that it runs.
    Verify,
    /// Release the source. The source commits by writing it down.
    Commit,
    /// Delete the pod at the source, and run it at the destination.
    DeleteSource,
    /// It failed or was aborted: set the pod going at the source.
    ThawSource,
    /// It failed or was aborted: delete the pod at the destination.
    DiscardDestination,
    /// Have both agents remove what they hold of the migration.
    Clean,
    /// Nothing is left to do.
    Done,
}

const TRANSACTIONAL: [Step; 11] = [
    Step::Reserve,
    Step::Prepare,
    Step::Freeze,
    Step::Checkpoint,
    Step::Transfer,
    Step::Restore,
    Step::Verify,
    Step::Commit,
    Step::DeleteSource,
    Step::Clean,
    Step::Done,
];

const DELETE_FIRST: [Step; 11] = [
    Step::Reserve,
    Step::Prepare,
    Step::Freeze,
    Step::Checkpoint,
    Step::Commit,
    Step::DeleteSource,
    Step::Transfer,
    Step::Restore,
    Step::Verify,
    Step::Clean,
    Step::Done,
];

impl Step {
    /// The steps of a migration that succeeds, in their order.
    #[must_use]
    pub fn sequence(order: MigrationOrder) -> &'static [Step] {
        match order {
            MigrationOrder::Transactional => &TRANSACTIONAL,
            MigrationOrder::DeleteFirst => &DELETE_FIRST,
        }
    }

    /// The step after this one if all goes well.
    pub(super) fn after(self, order: MigrationOrder) -> Step {
        match self {
            Step::ThawSource => Step::DiscardDestination,
            Step::DiscardDestination => Step::Clean,
            step => {
                let sequence = Self::sequence(order);
                let place = sequence.iter().position(|each| *each == step);
                place.and_then(|place| sequence.get(place + 1)).copied().unwrap_or(Step::Done)
            }
        }
    }
}
