//! The whole transaction against a world that crashes and loses, repeats and delays messages.

mod at_every_step;
mod destination_node;
mod properties;
mod source_node;
mod world;

pub(super) use world::{Crash, Happening, World};

/// What a client sees of the pod: which start of its program it is, and how far that has counted.
pub(super) type Count = (u32, u64);
