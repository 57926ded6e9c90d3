//! What Portolan does on a node.
//!
//! - [`freezer`] stops all containers of a pod at one instant and holds them;
//! - [`store`] keeps checkpoints in a folder of the node, bounded, and lets each be used once;
//! - [`archive`] packs what belongs to a checkpoint and unpacks it as input of a stranger.
//!
//! The crate has few dependencies on purpose.

pub mod archive;
pub mod freezer;
mod name;
pub mod store;
mod tree;

pub use name::{Name, NameError};
