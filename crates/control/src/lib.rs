//! The controllers of Portolan, one folder a capability.

pub mod capacity;
pub mod copy;
pub mod fleet;
pub mod names;
pub mod peering;
mod placement;
mod run;

pub use run::run;
