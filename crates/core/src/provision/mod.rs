//! Clusters and nodes made in the cloud when the fleet has no room.

mod demand;
mod machine;
mod machines;
#[cfg(test)]
mod test_support;

pub use demand::{Demand, Waiting, demand};
pub use machine::MachineType;
pub use machines::{EXACT_PODS, EXACT_WORK, Left, LeftBecause, Limits, Machines, choose};
