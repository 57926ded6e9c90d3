//! The controllers of Portolan, one folder a capability.

pub mod capacity;
pub mod copies;
pub mod dependencies;
mod driver;
pub mod fleet;
mod jobs;
pub mod names;
pub mod peering;
mod placement;
mod provision;
mod recovery;
mod registrations;
mod review;
mod run;
mod services;

pub use run::run;
