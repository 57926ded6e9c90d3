//! The decisions of Portolan: pure functions from what is known to what to do.
//!
//! Nothing here does I/O, reads a clock or draws randomness; collections are ordered. The same input always gives the
//! same decision.

pub mod autoscale;
pub mod brake;
pub mod capacity;
pub mod doctor;
pub mod jobs;
pub mod latency;
pub mod migration;
pub mod placement;
pub mod provision;
pub mod report;
pub mod reschedule;
pub mod sharing;
pub mod summary;
pub mod tenancy;
mod time;
pub mod version;
