//! The controllers of Portolan, one folder a capability.

mod annotations;
pub mod capacity;
mod claims;
mod copies;
pub mod copy;
mod declared;
pub mod dependencies;
pub mod fleet;
mod identity;
mod jobs;
pub mod names;
pub mod peering;
mod placement;
mod preview;
mod recovery;
mod review;
mod run;
mod services;

pub use run::run;
