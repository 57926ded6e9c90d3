//! What Portolan does on a node.
//!
//! - [`freezer`] stops all containers of a pod at one instant and holds them;
//! - [`store`] keeps checkpoints in a folder of the node, bounded, and lets each be used once;
//! - [`archive`] packs what belongs to a checkpoint and unpacks it as input of a stranger;
//! - [`wrapper`] is the OCI runtime `portolan-runc`: it passes everything on to runc, except that a container that is to be
//!   restored is restored.
//!
//! The crate is small on purpose: the runtime is started for every call about every container of its pods.

pub mod annotations;
pub mod archive;
pub mod freezer;
mod name;
mod replace;
pub mod store;
mod tree;
pub mod wrapper;

pub use name::{Name, NameError};
pub use replace::replace;
pub use tree::empty_folder;
