//! The controllers of Portolan, one folder a capability.

pub mod fleet;
pub mod names;
pub mod placement;
