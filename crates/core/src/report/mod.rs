//! What a member reports of its distance to the other members.
//!
//! The hub names [`Endpoint`]s, the member keeps [`Measurements`] of them, and the hub [`judge`]s what it is told. Neither side
//! trusts the other: the member connects to nothing in itself or its machines, and the hub believes no number that cannot be.

mod endpoint;
mod judge;
mod measurements;

pub use endpoint::Endpoint;
pub use judge::{Report, judge};
pub use measurements::Measurements;
