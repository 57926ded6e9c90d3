//! Portolan's own controllers on sandbox clusters, on virtual time, with everything that can go wrong going wrong.
//!
//! A seed decides the fleet, what users do, which requests fail and where the controller crashes. The same seed gives
//! the same history, event by event.

mod contender;
mod gate;
mod harness;
mod invariants;
mod jobs;
mod scenario;
mod services;
mod wishes;

pub use contender::{CONTROLLER, Contender, LEASE, STANDBY};
pub use gate::Gate;
pub use harness::{Fleet, apply};
pub use scenario::{Outcome, simulate};
