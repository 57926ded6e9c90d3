//! Where the replicas of a workload go.
//!
//! Clusters that cannot take the workload are filtered out, those that can are put in the order of its policy, and the
//! replicas are divided over the first of them. What fits is placed; the rest is pending, with the reason of every
//! cluster. A cluster that does not answer keeps what it holds and gets nothing new.

mod candidate;
mod decide;
mod divide;

pub use candidate::{Candidate, Refusal, Standing};
pub use decide::{Decision, Placed, Undecided, Wanted, decide};
pub use divide::divide;
