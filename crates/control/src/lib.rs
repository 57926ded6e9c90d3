//! The controllers of Portolan, one folder a capability.

mod autoscale;
pub mod capacity;
pub mod copies;
pub mod dependencies;
mod driver;
pub mod fleet;
mod hub_kinds;
mod jobs;
pub mod measurement;
pub mod monitor;
pub mod names;
pub mod peering;
mod placement;
mod provision;
mod recovery;
mod registrations;
pub mod reporting;
mod reschedule;
mod review;
mod run;
mod services;
mod settings;
pub mod sharing;
pub mod tenancy;

pub use monitor::{Check, Monitor};
pub use run::{run, run_with};
pub use settings::{NotAService, PrometheusService, Settings};
