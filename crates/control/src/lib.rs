//! The controllers of Portolan, one folder a capability.

pub mod capacity;
pub mod copy;
pub mod fleet;
pub mod names;
mod placement;
mod run;

pub use run::run;
