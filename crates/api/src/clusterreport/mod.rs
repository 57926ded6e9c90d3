//! ClusterReport: what a member tells the hub of its distance to the other members, and of its capacity.

mod capacity;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::capacity::{
    CapacityRequest, GROUPS_AT_MOST, NODE_LABELS_AT_MOST, ROOMS_AT_MOST, ReportedCapacity, ReportedNodes,
    ReportedRoom,
};
use crate::{
    conditions::conditions_schema,
    duration::Duration,
    schema::{Rule, kind, rule, rules},
};

/// How many other clusters a report is about at most.
pub const TARGETS_AT_MOST: usize = 256;

/// What a hub asks a member to tell.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "portolan.dev",
    version = "v1alpha1",
    kind = "ClusterReport",
    plural = "clusterreports",
    shortname = "creport",
    category = "portolan",
    namespaced,
    schema = "manual",
    status = "ClusterReportStatus",
    derive = "PartialEq",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Observed", type_ = "date", json_path = ".status.observedAt"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReportSpec {
    /// The clusters to which the round-trip time is measured. The hub writes them once this cluster measures at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub targets: Vec<ReportTarget>,
    /// Asks for a summary of the capacity, which the hub then reads instead of watching nodes and pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<CapacityRequest>,
}

/// Another cluster, and where its API server is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportTarget {
    /// The name of its ForeignCluster in the hub.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The address of its API server, such as https://203.0.113.7:6443.
    #[schemars(length(min = 1, max = 300))]
    #[schemars(extend("x-kubernetes-validations" = rules(&[SERVER_RULES])))]
    pub server: String,
}

const SERVER_RULES: &[Rule] = &[rule(
    r"self.matches('^https://([A-Za-z0-9.-]+|\\[[0-9A-Fa-f:.]+\\]):[0-9]{1,5}$')",
    "must be https:// with a host and a port and nothing else, such as https://203.0.113.7:6443",
)];

/// What was measured. The controller of the measuring cluster writes all of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReportStatus {
    /// The generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What was found out: Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// When the cluster last measured. A report that is older than five minutes does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Time>,
    /// The round-trip times to those targets that answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["to"]))]
    pub latencies: Vec<ReportedLatency>,
    /// The capacity of the cluster in a few kilobytes. A summary that is older than five minutes does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<ReportedCapacity>,
}

/// A round-trip time that a member measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedLatency {
    /// The name of the target.
    #[schemars(length(min = 1, max = 63))]
    pub to: String,
    /// The round-trip time, smoothed over the last measurements.
    pub rtt: Duration,
}

kind!(
    defaulted ClusterReport,
    ClusterReportSpec,
    ClusterReportStatus,
    "A ClusterReport is what this cluster tells a hub of its distance to the other members of the fleet, and of its capacity. The \
     hub names the other members or asks for a summary, and the controller of this cluster measures and summarises if its \
     administrator has switched that on."
);
