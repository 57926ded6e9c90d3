//! Where the replicas of a workload go.
//!
//! Clusters that cannot take the workload are filtered out, those that can are put in the order of its policy, and the
//! replicas are divided over the first of them. What does not fit there goes to the nearest clusters that stand in, if
//! the workload lets it. Replicas that run and find no place as the present spec asks for them stay where they are; the rest is
//! pending, with the reason of every cluster. A cluster that does not answer keeps what it holds and gets nothing new.

mod candidate;
mod decide;
mod decision;
mod divide;
mod explain;
mod field;
mod overflow;
mod pause;
mod prioritise;
mod refusals;
mod request;
mod retain;
mod shares;
mod transition;

pub use candidate::{Candidate, Refusal, Site, Standing};
pub use decide::decide;
pub use decision::{Decision, Kept, KeptBecause, Placed, Undecided};
pub use divide::divide;
pub use explain::{Account, Filter, explain, unknown_origin_message};
pub use pause::hold_while_paused;
pub use request::PlacementRequest;
pub use shares::is_shared_out;
pub use transition::{CopySnapshot, Order, transition};
