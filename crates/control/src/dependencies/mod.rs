//! ConfigMaps and Secrets that follow the workloads that refer to them.
//!
//! Only what a template refers to travels. What is propagated into a member is marked with the hub, with the version of its
//! source (uid and resourceVersion; a digest would give a short secret away) and with the workloads that need it, as long
//! as they are few; of many the hub knows itself who they are. It is kept current, set back if somebody changes it, and
//! goes with the last workload that needs it. What is not ours is never taken over, and some things never leave the hub.
//!
//! It is the same for every kind of workload: a controller carries before it applies a copy, and releases what it no
//! longer needs after that is ready or gone.
//!
//! # Nothing is left behind
//!
//! Before anything is propagated for a workload, its status says that it has dependencies and names the cluster; both stay
//! until that cluster answers and holds nothing of it. So a restart knows where to look. What comes late (an answer that
//! was lost, a watch that lags, a request of a leader that was replaced) is seen by the watch of the namespace: it wakes
//! the workloads that it is marked with, and what is marked with workloads that are gone is let go by [`DependencyGc`].

mod finding;
mod gc;
mod needed;
mod propagate;
mod propagated;
mod propagation;
mod references;
mod sources;
mod withheld;

pub use finding::{finding, has_dependencies};
pub(crate) use gc::DependencyGc;
pub use propagate::{
    PropagatedFacts, PropagationResult, is_left, needs_recorded, propagate, release_recorded, release_seen,
};
pub use propagated::{Namespaced, Propagated};
pub(crate) use propagation::Propagation;
pub use references::{DependencyKind, Reference, References, references};
pub use sources::Sources;
