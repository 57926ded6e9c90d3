//! Portolan on sandbox clusters, on virtual time. One binary, so that it links once.

#![allow(clippy::unwrap_used)]

mod calls;
mod dependencies;
mod determinism;
mod drift;
mod hostile;
mod jobs;
mod leaders;
mod mistakes;
mod peering;
mod placement;
mod seeds;
mod sequences;
mod services;
mod signals;
mod silence;
mod stage;
mod stress;
mod template;
