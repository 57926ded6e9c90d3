//! ConfigMaps and Secrets that follow the workloads that refer to them.
//!
//! Only what a template refers to travels. What is carried into a member is marked with the hub, with the version of its
//! source (uid and resourceVersion; a digest would give a short secret away) and with the workloads that need it. It is
//! kept current, and goes with the last workload that needs it. What is not ours is never taken over.
//!
//! It is the same for every kind of workload: a controller carries before it applies a copy, and releases what it no
//! longer needs after that is ready or gone.

mod carriage;
mod carry;
mod references;
mod sources;

pub use carriage::{Carriage, Namespaced};
pub use carry::{Carried, CarriedFacts, carry, needs, release};
pub use references::{DependencyKind, Reference, References, references};
pub use sources::Sources;
