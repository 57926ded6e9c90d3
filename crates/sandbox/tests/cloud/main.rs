//! The simulated Cluster API: clusters and machines come, scale, fail and go, and a client sees what the real one shows.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod failures;
mod life;
mod stage;
