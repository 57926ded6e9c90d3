//! Portolan's own controllers on sandbox clusters, on virtual time, with everything that can go wrong going wrong.
//!
//! A seed decides the fleet, what users do, which requests fail and where the controller crashes. The same seed gives
//! the same history, event by event.

mod acts;
mod contender;
pub mod elastic;
mod gate;
mod harness;
mod invariants;
mod jobs;
mod patience;
mod readiness;
mod rollouts;
mod scenario;
mod services;
mod tally;
pub mod tenancy;
mod wishes;

pub use contender::{CONTROLLER, Contender, LEASE, STANDBY};
pub use gate::Gate;
pub use harness::{Fleet, apply, try_apply};
use scenario::PARTIES;
pub use scenario::{Outcome, TENANCIES, simulate};
pub use tally::{Drawn, Tally};

/// Whether a party of a world is a process of controllers.
fn is_controller(party: &str) -> bool {
    party == STANDBY || party.starts_with(CONTROLLER)
}
