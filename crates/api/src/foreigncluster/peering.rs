//! What two clusters are to each other, beside members of a fleet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the other cluster is here: a consumer with a tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IncomingPeering {
    /// The only user that the other cluster is here, as its certificate says. A certificate of another user is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub user: Option<String>,
    /// The namespace of the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub tenant_namespace: Option<String>,
    /// The namespaces in which the other cluster may place workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub namespaces: Vec<String>,
}

/// What this cluster is to the other one: its tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutgoingPeering {
    /// The namespace of this cluster in the other one.
    #[schemars(length(min = 1, max = 63))]
    pub tenant_namespace: String,
    /// Whether this cluster places workloads in namespaces of the other one. Without that, the other cluster is no member
    /// that workloads are placed on.
    #[serde(default)]
    pub placement: bool,
}
