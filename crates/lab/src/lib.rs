//! Real Kubernetes clusters on one machine, for tests and benchmarks.
