//! Whole Kubernetes clusters in one process, on real or virtual time.
