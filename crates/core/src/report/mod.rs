//! What a member reports of its distance to the other members, and of its capacity.
//!
//! The hub names [`Endpoint`]s, the member keeps [`Measurements`] of them, and the hub [`judge`]s what it is told, and takes of
//! two members what they have [`agreed`] on. Neither side trusts the other: the member connects to nothing in itself or its machines,
//! and the hub believes no number that cannot be.

mod agreement;
mod capacity;
mod endpoint;
mod judge;
mod measurements;

pub use agreement::agreed;
pub use capacity::{NotASummary, is_news, read, summarise};
pub use endpoint::Endpoint;
pub use judge::{Report, judge};
pub use measurements::Measurements;
