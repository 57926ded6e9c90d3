//! What is known about a cluster of the fleet.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{IncomingStatus, OutgoingStatus};
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
    /// What was found out: Ready, Reachable, Sharing, OfferAccepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
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
    /// When the cluster summarised its capacity, if the numbers above are from its report (`spec.capacity.fromReport`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_observed_at: Option<Time>,
    /// Measured or given round-trip times to other clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["to"]))]
    pub latencies: Vec<Latency>,
    /// Round-trip times to other members that the cluster measured itself.
    // Apart from the others: an older version of Portolan reads the status too, and refuses sources that it does not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["to"]))]
    pub reported_latencies: Vec<MemberLatency>,
    /// What the cluster was given of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incoming: Option<IncomingStatus>,
    /// What the cluster offers to this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outgoing: Option<OutgoingStatus>,
    /// The numbers above as short texts, for tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<ClusterSummary>,
}

/// The numbers of a cluster as short texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSummary {
    /// Ready nodes out of all, such as 3/3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
    /// CPUs that pods request out of all, such as 3.5/8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Memory that pods request out of all, such as 2Gi/16Gi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// The round-trip time between the hub and the cluster, such as 2.4ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<String>,
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
    /// It was given in a spec.
    Static,
}

/// A round-trip time that a member measured itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberLatency {
    /// The name of the other cluster.
    pub to: String,
    /// The round-trip time, smoothed over the last measurements.
    pub rtt: Duration,
    /// When it was last measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<Time>,
}
