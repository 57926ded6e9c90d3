//! What a CloudProvisioner has made, what it costs, and what it does next. The status is all that a new leader needs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{conditions::conditions_schema, money::Money, placement::Resources, quantity::quantities_schema};

/// What was made and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudProvisionerStatus {
    /// The generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What was found out: Ready, Provisioned, Progressing, Failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// How far the cloud cluster is.
    #[serde(default)]
    pub phase: CloudPhase,
    /// How many worker nodes there are.
    #[serde(default)]
    pub nodes: i32,
    /// How many worker nodes are ready.
    #[serde(default)]
    pub ready_nodes: i32,
    /// How many worker nodes are wanted.
    #[serde(default)]
    pub desired_nodes: i32,
    /// The worker nodes by machine type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["machineType"]))]
    pub pools: Vec<NodePool>,
    /// The cloud cluster, from the moment that it is asked for until it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<CloudCluster>,
    /// How many clusters were asked for so far. The number is part of the name of each, so that none is made twice.
    #[serde(default)]
    pub clusters: i64,
    /// The ForeignCluster that the cloud cluster has become.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_cluster: Option<String>,
    /// What the workloads that wait for the cloud request together, by resource.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub requested: Resources,
    /// The workloads that wait for the cloud, as kind/namespace/name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub waiting: Vec<String>,
    /// Pods that get no node here, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub left_out: Vec<LeftOut>,
    /// Pods that wait beside nodes which should hold them by spec.machineTypes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub unhelped: Vec<UnhelpedPods>,
    /// Since when the cluster has been without work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_since: Option<Time>,
    /// Since when the cluster, which had joined, has been silent. Nothing is added or removed meanwhile, and the delays
    /// after which nodes or the cluster are removed do not go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_since: Option<Time>,
    /// How many times in a row the cluster could not be made.
    #[serde(default)]
    pub failures: i32,
    /// The last failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<ProvisionFailure>,
    /// Before this time nothing is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Time>,
    /// What the machines that exist cost per hour, the cluster's own price included.
    #[serde(default)]
    pub cost_per_hour: Money,
    /// What all clusters have cost so far, until costCountedUntil.
    #[serde(default)]
    pub cost_so_far: Money,
    /// The same exactly, in millionths of the currency per hour times seconds: the next cost is counted from it.
    #[serde(default)]
    pub cost_counted: i64,
    /// Until when the cost is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_counted_until: Option<Time>,
    /// The present cluster and the last ones, with what each has cost. The newest comes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "atomic"))]
    pub bursts: Vec<Burst>,
    /// Clusters in Cluster API that carry Portolan's label and whose CloudProvisioner does not exist or does not know
    /// them, as namespace/name. They are not deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub orphans: Vec<String>,
}

/// How far a cloud cluster is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CloudPhase {
    /// There is none, and none is needed.
    #[default]
    Idle,
    /// It is being made.
    Provisioning,
    /// It has joined and takes work.
    Ready,
    /// Nodes are being added or removed.
    Scaling,
    /// It is being removed.
    Deprovisioning,
    /// It could not be made; the conditions say why.
    Failed,
}

/// The cloud cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudCluster {
    /// The name of the Cluster in Cluster API.
    pub name: String,
    /// Which cluster of this CloudProvisioner it is, counted from 1.
    pub number: i64,
    /// When it was asked for.
    pub requested_at: Time,
    /// Whether Cluster API has it.
    #[serde(default)]
    pub created: bool,
    /// When it became ready and joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<Time>,
    /// Since when Cluster API reports a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Time>,
    /// Since when and why it is being removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprovisioning: Option<Deprovisioning>,
}

/// Why a cloud cluster is being removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deprovisioning {
    /// Since when.
    pub since: Time,
    /// One word in CamelCase that says why.
    pub reason: String,
}

/// The worker nodes of one machine type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePool {
    /// The machine type.
    pub machine_type: String,
    /// How many nodes are wanted.
    #[serde(default)]
    pub desired: i32,
    /// How many nodes there are.
    #[serde(default)]
    pub nodes: i32,
    /// How many nodes are ready.
    #[serde(default)]
    pub ready: i32,
    /// What one node costs per hour.
    #[serde(default)]
    pub price_per_hour: Money,
    /// Since when there are fewer machines than wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_since: Option<Time>,
    /// Since when Cluster API reports a failure of one of its machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Time>,
    /// Before this time no further nodes of this type are tried: the last ones could not be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Time>,
    /// The machines that are being removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub removing: Vec<String>,
    /// Whether the number of wanted nodes was lowered for those that are being removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lowered: bool,
    /// The machines that are little used, and since when.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub little_used: std::collections::BTreeMap<String, Time>,
}

/// A cluster or node that could not be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionFailure {
    /// When it was given up.
    pub time: Time,
    /// The reason of Cluster API or of its infrastructure provider, or Timeout.
    pub reason: String,
    /// The message of Cluster API or of its infrastructure provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Pods that get no node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// How many.
    pub pods: i32,
    /// What each of them requests.
    #[schemars(schema_with = "quantities_schema")]
    pub requests: Resources,
    /// One word in CamelCase that says why.
    pub reason: String,
    /// A sentence with the numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Pods that wait beside a node which should hold them by spec.machineTypes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnhelpedPods {
    /// What each of them requests.
    #[schemars(schema_with = "quantities_schema")]
    pub requests: Resources,
    /// Since when they have waited beside such a node.
    pub since: Time,
    /// How many times nodes did not help them.
    #[serde(default)]
    pub times: i32,
    /// Before this time no further node is requested for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

/// One cloud cluster and what it has cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Burst {
    /// Which cluster of this CloudProvisioner it was.
    pub number: i64,
    /// When it was asked for.
    pub started_at: Time,
    /// When it was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    /// The largest number of nodes.
    #[serde(default)]
    pub most_nodes: i32,
    /// What it has cost so far.
    #[serde(default)]
    pub cost: Money,
    /// The same exactly, in millionths of the currency per hour times seconds.
    #[serde(default)]
    pub counted: i64,
}
