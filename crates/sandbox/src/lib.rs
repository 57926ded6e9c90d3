//! Whole Kubernetes clusters in one process, on real or virtual time.
//!
//! A [`World`] holds clusters that share a clock, a seed and a network. Each [`Cluster`] has an API server behind
//! an ordinary `kube::Client` (no sockets), the controllers that a small cluster needs, and simulated nodes. Faults
//! are injected by a seeded [`FaultPlan`]; everything that happens is in the world's [`EventLog`].

mod admission;
mod api;
mod auth;
mod cloud;
mod cluster;
mod crd;
mod error;
mod kinds;
mod merge;
mod pki;
mod profile;
mod protobuf;
mod quantity;
mod registry;
mod schema;
mod serve;
mod server;
mod store;
mod table;
mod usage;
mod verbs;
mod world;

pub use admission::{DenyingPolicy, MutatingHook};
pub use auth::User;
pub use cloud::{
    BootTime, CloudApi, CloudConfig, CloudFailure, CloudMachine, MachineRecord, cluster_class,
    cluster_templates,
};
pub use pki::{CertificateError, ClientCertificate};
pub use profile::{Behaviour, Curve, CurveError, Pattern, Profile, Rule};
pub use serve::{ServeError, Served, kubeconfig, kubeconfig_with};
pub use server::Called;
pub use usage::{Flow, Histogram, PodUsage, ServedTraffic, Source};
pub use world::{
    Change, Cluster, ClusterConfig, ConnectionError, Crash, CrashPoint, EventLog, FaultAnswer, FaultPlan,
    FaultRates, HostileAnswer, HostileRule, Listener, LogEntry, NodeConfig, ObjectEdit, PartialFault,
    RequestFilter, Violation, World, WorldConfig,
};
