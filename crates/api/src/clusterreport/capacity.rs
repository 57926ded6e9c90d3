//! What a cluster reports of its free room, in place of its nodes and pods.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    foreigncluster::NodeCount,
    placement::{ClusterTaint, Resources},
};

/// How many labels of nodes are reported at most beside those that always are.
pub const NODE_LABELS_AT_MOST: usize = 16;

/// How many groups of nodes a summary has at most.
pub const GROUPS_AT_MOST: usize = 16;

/// How many rooms all groups of a summary have together at most.
pub const ROOMS_AT_MOST: usize = 192;

/// Asks a cluster for a summary of its capacity.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityRequest {
    /// Labels of nodes that workloads may ask for, beside kubernetes.io/arch, kubernetes.io/os, node.kubernetes.io/instance-type,
    /// topology.kubernetes.io/region and topology.kubernetes.io/zone. Where a workload asks for any other label, no node matches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 317)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub node_labels: Vec<String>,
}

/// A summary of the capacity of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedCapacity {
    /// When the cluster was last summarised.
    pub observed_at: Time,
    /// The resourceVersion of the latest pod that is counted: no later one is.
    #[schemars(length(max = 128))]
    pub pods_resource_version: String,
    /// The labels of nodes that groups tell. Of others nothing is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 317)))]
    pub node_labels: Vec<String>,
    /// How many nodes the cluster has.
    #[serde(default)]
    pub nodes: NodeCount,
    /// How many nodes take pods and are in no group, since there would be too many groups.
    #[serde(default)]
    pub omitted_nodes: i32,
    /// How many pods the cluster has that have not finished.
    #[serde(default)]
    pub pods: i32,
    /// How many of them wait for a node.
    #[serde(default)]
    pub pending_pods: i32,
    /// What all nodes together have for pods, by resource.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "amounts_schema")]
    pub capacity: Resources,
    /// What the pods of the cluster request together, by resource.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "amounts_schema")]
    pub allocated: Resources,
    /// The nodes that take pods, by labels and taints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub groups: Vec<ReportedNodes>,
}

/// Nodes with the same labels and taints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedNodes {
    /// Their labels, as far as they are told.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub labels: BTreeMap<String, String>,
    /// Their taints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub taints: Vec<ClusterTaint>,
    /// What they have for pods together, by resource.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "amounts_schema")]
    pub allocatable: Resources,
    /// What is free on them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 192))]
    pub rooms: Vec<ReportedRoom>,
}

/// Nodes that have at least so much free.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedRoom {
    /// How many nodes these are.
    pub nodes: i32,
    /// What is free on each of them at least, by resource.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "amounts_schema")]
    pub free: Resources,
}

/// Quantities that a controller writes and that the reader checks: rules for each of them would be too much for the API server.
fn amounts_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": { "type": "string", "maxLength": 40 },
    })
}
