//! What moves a running pod on its node.
//!
//! - [`session`] does what the coordinator orders, writes down each step before it takes it, and goes on after a crash;
//! - [`transfer`] brings a checkpoint from node to node, over mutual TLS, resumable and checked;
//! - [`hands`] act on a node with containerd, runc and CRIU;
//! - [`images`] decodes what arrives as input of a stranger, and refuses what exceeds the rights of the admitted pod;
//! - [`agent`] ties them together on a node of a cluster.

pub mod agent;
pub mod hands;
pub mod images;
mod lane;
pub mod session;
pub mod transfer;

pub use lane::LaneError;
