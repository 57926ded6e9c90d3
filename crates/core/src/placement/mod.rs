//! Where the replicas of a workload go.
//!
//! Clusters that cannot take the workload are filtered out, those that can are put in the order of its policy, and the
//! replicas are divided over the first of them. What does not fit there goes to the nearest clusters that stand in, if
//! the workload lets it; the rest is pending, with the reason of every cluster. A cluster that does not answer keeps
//! what it holds and gets nothing new.

mod candidate;
mod decide;
mod divide;
mod explain;
mod leaving;
mod overflow;
mod prioritise;
mod refusals;
mod shares;

pub use candidate::{Candidate, Refusal, Site, Standing};
pub use decide::{Decision, Placed, Undecided, Wanted, decide};
pub use divide::divide;
pub use explain::{Account, Filter, explain};
pub use shares::is_shared_out;
