//! What members tell controllers.

use crate::capacity::Owner;
use crate::dependencies::Reference;

/// What has changed in a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberEvent {
    /// A copy of an object of the hub, or what belongs to the copy: the object in the hub.
    Copy(Owner),
    /// A namespace: it may be open now.
    Namespace(String),
    /// Its nodes or pods, and so its numbers. The ledger tells those who wait for room.
    Capacity,
    /// It fell silent, or answers again, or what its ForeignCluster asks for has changed.
    Health,
    /// How far away it is.
    Latency,
    /// What it offers to this cluster.
    Offer,
    /// The traffic of services in this namespace.
    Traffic(String),
    /// A ConfigMap or Secret that was carried there: its namespace and which.
    Dependency(String, Reference),
}
