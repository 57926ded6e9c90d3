//! The OCI runtime `portolan-runc`: runc, except that a container that is to be restored is restored.
//!
//! containerd's shim calls it as it calls runc. A `create` whose bundle says that the container is to be restored waits for its
//! checkpoint and becomes a `restore` that stays frozen; the `start` after it does nothing. Everything else is handed to runc
//! as it came.
//!
//! It fails closed: a container that is to be restored is not started from its image before its migration is committed. After
//! that, one that dies is started afresh, never from its old checkpoint.

mod args;
mod bundle;
mod end;
mod error;
mod freeze;
mod id;
mod links;
mod plan;
mod restore;
mod run;
mod settings;

pub use args::{ArgsError, Command, Create, Invocation};
pub use bundle::{Bundle, BundleError};
pub use error::WrapperError;
pub use plan::{Look, Plan, Refused, Request, decide, look, request};
pub use run::main;
pub use settings::Settings;
