//! The new member, as the user describes it.

use portolan_api::foreigncluster::{PrometheusQuery, StaticLatency};
use std::collections::BTreeMap;

/// Portolan's own namespace, in hubs and in members.
pub const NAMESPACE: &str = "portolan";

/// The new member, as the user describes it.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// The name of its ForeignCluster.
    pub name: String,
    /// Whether it is the hub itself.
    pub local: bool,
    /// Labels of the ForeignCluster, which cluster selectors match.
    pub labels: BTreeMap<String, String>,
    /// Whether it costs money while it exists, and is chosen last.
    pub cloud: bool,
    /// Round-trip times that are given instead of measured.
    pub latencies: Vec<StaticLatency>,
    /// Namespaces of the member that are opened to placement.
    pub namespaces: Vec<String>,
    /// Whether the hub may place in every namespace that has the label.
    pub everywhere: bool,
    /// The Prometheus of the member that is asked for traffic.
    pub prometheus: Option<PrometheusQuery>,
    /// For how many seconds a token is asked for.
    pub token_lifetime: i64,
    /// What pods may ask of their nodes in namespaces that are made: a Pod Security Standard.
    pub pod_security: Option<String>,
}
