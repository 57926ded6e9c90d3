//! Real Kubernetes clusters on one machine, for tests and benchmarks.

pub mod image;
pub mod parts;
