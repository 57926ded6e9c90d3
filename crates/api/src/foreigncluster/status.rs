//! What is known about a cluster of the fleet.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    conditions::conditions_schema, duration::Duration, placement::Resources, quantity::quantities_schema,
};

/// What is known about a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForeignClusterStatus {
    /// The generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What was found out: Ready, Reachable, Authenticated, NetworkReady, OutgoingPeering, IncomingPeering.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// The phases of the peering, in the words of Liqo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub peering_conditions: Vec<PeeringCondition>,
    /// The namespaces that the two clusters gave each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_namespace: Option<TenantNamespace>,
    /// The address of the cluster's API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_server_url: Option<String>,
    /// The version of Kubernetes that the cluster runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// The resourceVersion of the Secret with the credential that the cluster has accepted last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_resource_version: Option<String>,
    /// When the cluster last answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<Time>,
    /// How many nodes the cluster has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeCount>,
    /// What all nodes together have for pods, by resource.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub capacity: Resources,
    /// What the pods of the cluster request together, by resource.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub allocated: Resources,
    /// What is left on nodes that take new pods, by resource.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub available: Resources,
    /// How many pods of the cluster wait for a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_pods: Option<i32>,
    /// Measured or given round-trip times to other clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["to"]))]
    pub latencies: Vec<Latency>,
}

/// One phase of a peering.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PeeringCondition {
    /// The phase.
    #[serde(rename = "type")]
    pub type_: PeeringConditionType,
    /// How far it is.
    #[serde(default)]
    pub status: PeeringConditionStatus,
    /// When the status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// One word in CamelCase that says why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A sentence that says why, and what would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The phases of a peering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum PeeringConditionType {
    /// This cluster uses the other one's resources.
    OutgoingPeering,
    /// The other cluster uses this one's resources.
    IncomingPeering,
    /// The tunnel between the clusters.
    NetworkStatus,
    /// The other cluster's API server.
    #[serde(rename = "APIServerStatus")]
    ApiServerStatus,
    /// Our identity in the other cluster.
    AuthenticationStatus,
    /// Whether this ForeignCluster can be worked on at all.
    ProcessForeignClusterStatus,
}

/// How far a phase of a peering is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum PeeringConditionStatus {
    /// There is none.
    #[default]
    None,
    /// It has begun and waits for the other side.
    Pending,
    /// It is established.
    Established,
    /// It is being taken down.
    Disconnecting,
    /// The other side refused the token.
    Denied,
    /// The other side refused because no token was given.
    EmptyDenied,
    /// It failed.
    Error,
    /// It succeeded.
    Success,
    /// Somebody else takes care of it.
    External,
}

/// The namespaces that two clusters gave each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantNamespace {
    /// The namespace in this cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<String>,
    /// The namespace in the other cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
}

/// How many nodes there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeCount {
    /// All nodes.
    #[serde(default)]
    pub total: i32,
    /// Nodes that are ready.
    #[serde(default)]
    pub ready: i32,
}

/// A round-trip time between two clusters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Latency {
    /// The name of the other cluster.
    pub to: String,
    /// The round-trip time, smoothed over the last measurements.
    pub rtt: Duration,
    /// How much single measurements differ from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<Duration>,
    /// Where the number comes from.
    #[serde(default)]
    pub source: LatencySource,
    /// When it was last measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<Time>,
}

/// Where a round-trip time comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LatencySource {
    /// It was measured between the two clusters.
    #[default]
    Measured,
    /// It was estimated from measurements of the hub.
    Estimated,
    /// It was given in a spec.
    Static,
}
