//! What moves a running pod on its node.
//!
//! - [`session`] does what the coordinator orders, writes down each step before it takes it, and goes on after a crash.

pub mod session;
