//! Portolan on sandbox clusters, on virtual time. One binary, so that it links once.

mod determinism;
mod placement;
