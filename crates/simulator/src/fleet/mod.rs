//! A fleet that runs as the beginning of a scenario: read from its hub and members, turned into a scenario, and joined with
//! what a user wants to happen.

mod assumption;
mod cloud;
mod convert;
mod distances;
mod join;
mod member;
mod nodes;
mod read;
mod template;
#[cfg(test)]
mod tests;
mod workload;

pub use assumption::{Assumption, Unread};
pub use convert::{Converted, FleetState, convert};
pub use join::join;
pub use read::{HubState, MemberState, read_hub, read_member};
