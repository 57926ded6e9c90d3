//! Portolan on sandbox clusters, on virtual time. One binary, so that it links once.

#![allow(clippy::unwrap_used)]

mod calls;
mod credentials;
mod departure;
mod dependencies;
mod determinism;
mod drift;
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
mod template;
