//! Which room of a cluster counts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    clusterreport::CapacityRequest,
    placement::{ClusterTaint, Resources},
    quantity::quantities_schema,
    schema::{Rule, rule, rules},
};

/// Which room of a cluster counts beside that of the nodes it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[RULES])))]
pub struct ClusterCapacity {
    /// Whether room is counted. With false, replicas are placed on the cluster however full its nodes are, and wait
    /// there for a node: an autoscaler of the cluster decides whether they get one.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub count_room: bool,

    /// How many nodes an autoscaler of the cluster gives it at most. Replicas are placed also where they will fit only
    /// when it has grown, and wait there for their nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 15_000))]
    pub max_nodes: Option<i32>,

    /// What a new node is like. Without it, new nodes are taken to be like most of those that the cluster has; a cluster
    /// that may have none needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_template: Option<NodeTemplate>,

    /// Where room comes from, if not from a watch of all nodes and pods: a summary of a few kilobytes that Portolan reports in
    /// the cluster (`portolan install --report-capacity` there). It is meant for clusters of thousands of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_report: Option<CapacityRequest>,
}

const RULES: &[Rule] = &[
    rule(
        "!has(self.countRoom) || self.countRoom || (!has(self.maxNodes) && !has(self.nodeTemplate))",
        "capacity with countRoom: false takes neither maxNodes nor nodeTemplate: room is not counted there",
    ),
    rule(
        "!has(self.nodeTemplate) || has(self.maxNodes)",
        "capacity.nodeTemplate needs capacity.maxNodes: how many such nodes there may be",
    ),
    rule(
        "!has(self.fromReport) || !has(self.maxNodes) || has(self.nodeTemplate)",
        "capacity.fromReport with capacity.maxNodes needs capacity.nodeTemplate: a summary does not tell what a single node is like",
    ),
];

/// What a node is like that a cluster could have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeTemplate {
    /// What it has for pods, by resource, such as cpu, memory and pods: what is left when the pods of DaemonSets run.
    #[schemars(schema_with = "quantities_schema")]
    pub allocatable: Resources,

    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub labels: BTreeMap<String, String>,

    /// Its taints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<ClusterTaint>,
}

const fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_yes(value: &bool) -> bool {
    *value
}
