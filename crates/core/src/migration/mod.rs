//! The live migration of a pod as a transaction: never two running copies, and never none for good.
//!
//! Three parties take part, and each of them keeps a record that it writes before it acts:
//!
//! - the **coordinator**, a controller at the source. Its [`Record`] lives in the LiveMigration. [`plan`] takes the record
//!   and what both sides report, and answers the next record and the [`Orders`] that follow from it;
//! - the **source**, the agent on the pod's node: [`source::next`];
//! - the **destination**, the agent on the node where the pod is restored: [`destination::next`].
//!
//! # Who may run
//! The source may run the pod until its agent has written [`source::SourceStage::Releasing`] to its own disk: that one write is
//! the commit. Before it, the source thaws by itself when the pod has stood still for too long, and asks nobody. After it,
//! the source never thaws. The coordinator orders the destination to run the pod only after the source has reported that
//! it is released, so at most one side may run the pod at any time, whatever is lost, repeated or late. No clock is
//! needed for that: deadlines decide when to give up, never who may run.
//!
//! # Messages
//! Orders and reports may be lost, repeated, late and in any order. An order names the migration, the session and the
//! fencing token. The session is a number that an agent draws when it begins; an order of a session that is over finds no
//! record and does nothing. The token goes up when the coordinator gives up; an agent ignores orders with an older
//! token. Agents do the same action again after a crash, so every action can be repeated.

mod advance;
mod decision;
pub mod destination;
mod fence;
mod message;
#[cfg(test)]
mod model;
mod orders;
mod phase;
mod record;
mod rollback;
mod sides;
pub mod source;
mod step;

pub use advance::plan;
pub use decision::{Decision, Write};
pub use fence::Fence;
pub use message::{Answer, Order, Progress, Report, Terms};
pub use orders::{Orders, orders};
pub use record::{Abort, AbortCause, Entered, Outcome, Record};
pub use step::Step;

use destination::{DestinationGoal, DestinationStage};
use source::{SourceGoal, SourceStage};

/// What the coordinator orders the source.
pub type SourceOrder = Order<SourceGoal>;
/// What the coordinator orders the destination.
pub type DestinationOrder = Order<DestinationGoal>;
/// What the source reports.
pub type SourceReport = Report<SourceStage>;
/// What the destination reports.
pub type DestinationReport = Report<DestinationStage>;

/// What the coordinator knows when it decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The latest answer of the source.
    pub source: Answer<SourceStage>,
    /// The latest answer of the destination.
    pub destination: Answer<DestinationStage>,
    /// Whether the user wants the migration to be aborted.
    pub abort_requested: bool,
}

/// What is to be on record, and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What is to be written before any order goes out.
    pub record: Record,
    /// What each side is to do then.
    pub orders: Orders,
}
