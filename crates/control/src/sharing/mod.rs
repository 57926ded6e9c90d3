//! Resource negotiation: what this cluster shares with others, and what others share with it.
//!
//! **The provider's side** ([`provide`]) keeps a ResourceOffer in the namespace of every tenant. It follows what is free on its
//! own nodes, and gives each namespace of a tenant a ResourceQuota and a LimitRange, so that the API server itself admits no
//! more than was offered. A tenant has no rights on any of them.
//!
//! **The consumer's side** reads the offer with the credential of the peering and accepts it by policy. What is accepted bounds
//! the room of the member in the ledger.

mod bounds;
mod classes;
mod consumer;
mod enforce;
mod known;
mod objects;
mod pod_security;
mod provider;
mod roles;
mod tenants;
mod told;
mod words;

pub(crate) use consumer::{judge, recorded_quota, tell_provider};
pub use provider::{Providing, provide, provide_with};
pub(crate) use roles::rights_rows;
pub use roles::sharing_roles;

/// The name of the ResourceQuotas and LimitRanges that enforce an offer.
pub const ENFORCED_NAME: &str = "portolan";

/// The namespace of a tenant, unless its ForeignCluster names another one.
#[must_use]
pub fn tenant_namespace(consumer: &str) -> String {
    format!("portolan-tenant-{consumer}")
}
