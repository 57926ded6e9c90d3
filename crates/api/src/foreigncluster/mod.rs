//! ForeignCluster: a cluster of the fleet, remote or the local one.

mod capacity;
mod peering;
mod status;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::capacity::{ClusterCapacity, NodeTemplate};
pub use self::peering::{IncomingPeering, IncomingStatus, OfferAcceptance, OutgoingPeering, OutgoingStatus};
pub use self::status::{
    ClusterSummary, ForeignClusterStatus, Latency, LatencySource, MemberLatency, NodeCount,
};
use crate::{
    duration::Duration,
    placement::ClusterTaint,
    schema::{Rule, kind, rule, rules},
};

/// A cluster that this one peers with.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "portolan.dev",
    version = "v1alpha1",
    kind = "ForeignCluster",
    plural = "foreignclusters",
    shortname = "fc",
    category = "portolan",
    schema = "manual",
    status = "ForeignClusterStatus",
    derive = "PartialEq",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Nodes", type_ = "string", json_path = ".status.summary.nodes"),
    printcolumn(name = "CPU", type_ = "string", json_path = ".status.summary.cpu"),
    printcolumn(name = "Memory", type_ = "string", json_path = ".status.summary.memory"),
    printcolumn(name = "RTT", type_ = "string", json_path = ".status.summary.rtt"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.kubernetesVersion"),
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.type", priority = 1),
    printcolumn(name = "Cordoned", type_ = "boolean", json_path = ".spec.unschedulable", priority = 1),
    printcolumn(
        name = "ClusterID",
        type_ = "string",
        json_path = ".spec.clusterIdentity.clusterID",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[RULES])))]
pub struct ForeignClusterSpec {
    /// Whether this is another cluster, or the one that Portolan runs in as a member of its own fleet.
    #[serde(default, rename = "type")]
    pub type_: ClusterType,

    /// Who the cluster is.
    pub cluster_identity: ClusterIdentity,

    /// The Secret that holds the kubeconfig with which Portolan works in the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<ClusterCredentials>,

    /// Whether the cluster was made in a cloud and costs money while it exists. Such clusters are chosen last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cloud: bool,

    /// While it is true, nothing new is placed on the cluster. What runs there goes on running.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unschedulable: bool,

    /// Marks that keep workloads away unless they tolerate them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<ClusterTaint>,

    /// Round-trip times to other clusters that are given instead of measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["to"]))]
    pub latencies: Vec<StaticLatency>,

    /// Where the traffic of applications is asked for, besides their Services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<TrafficSource>,

    /// Which room counts beside that of the nodes that the cluster has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<ClusterCapacity>,

    /// What the cluster is here by an invitation: a consumer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incoming: Option<IncomingPeering>,

    /// What this cluster is there by an invitation: a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outgoing: Option<OutgoingPeering>,
}

impl ForeignClusterSpec {
    /// Whether workloads are placed on the cluster: it is neither a mere consumer of this one, nor a provider that gave this
    /// one no more than a tenant namespace.
    #[must_use]
    pub fn is_member(&self) -> bool {
        let consumes_only = self.credentials.is_none() && self.incoming.is_some() && self.outgoing.is_none();
        let is_tenant_only = self.outgoing.as_ref().is_some_and(|outgoing| !outgoing.placement);
        self.type_ == ClusterType::Local || (!consumes_only && !is_tenant_only)
    }
}

const RULES: &[Rule] = &[
    rule(
        "self.clusterIdentity.clusterID == oldSelf.clusterIdentity.clusterID",
        "clusterIdentity.clusterID is immutable: another cluster is another ForeignCluster",
    ),
    rule("self.type == oldSelf.type", "type is immutable: make a new ForeignCluster instead"),
    rule(
        "self.type != 'Local' || !has(self.credentials)",
        "a ForeignCluster of type Local takes no credentials: Portolan runs in that cluster",
    ),
    rule(
        "self.type != 'Local' || (!has(self.incoming) && !has(self.outgoing))",
        "a ForeignCluster of type Local takes neither incoming nor outgoing: a cluster shares nothing with itself",
    ),
    rule(
        "!has(self.capacity) || !has(self.capacity.fromReport) || (self.type != 'Local' && !has(self.outgoing))",
        "capacity.fromReport is for members of `portolan peer`: not for a ForeignCluster of type Local, nor for one with outgoing",
    ),
];

const ROOT_RULES: &[Rule] = &[rule(
    "size(self.metadata.name) <= 63",
    "the name of a ForeignCluster must have at most 63 characters, since it becomes the value of labels",
)];

/// Where a cluster is, seen from this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ClusterType {
    /// Another cluster, reached with credentials.
    #[default]
    Remote,
    /// The cluster that Portolan runs in.
    Local,
}

/// Who a cluster is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterIdentity {
    /// The unique identifier of the cluster, which never changes.
    #[serde(rename = "clusterID")]
    #[schemars(length(min = 1, max = 253))]
    pub cluster_id: String,
    /// The name of the cluster, to be shown to people.
    #[schemars(length(min = 1, max = 253))]
    pub cluster_name: String,
}

/// Where the credentials for a cluster are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCredentials {
    /// The Secret with the kubeconfig.
    pub secret_ref: SecretKeyRef,
}

/// One key of a Secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyRef {
    /// The namespace of the Secret.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// The name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key in the Secret's data.
    #[serde(default = "kubeconfig_key")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

fn kubeconfig_key() -> String {
    "kubeconfig".to_owned()
}

/// A round-trip time that is given instead of measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StaticLatency {
    /// The name of the other cluster.
    #[schemars(length(min = 1, max = 253))]
    pub to: String,
    /// The round-trip time, such as 12ms. It counts in both directions.
    pub rtt: Duration,
}

/// Where traffic is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrafficSource {
    /// A Prometheus in the cluster.
    pub prometheus: PrometheusQuery,
}

/// A query of a Prometheus that is reached through the API server's proxy of its Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrometheusQuery {
    /// The namespace of its Service.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// The name of its Service.
    #[schemars(length(min = 1, max = 63))]
    pub service: String,
    /// The port of its Service.
    #[serde(default = "prometheus_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// A query for requests per second, by the labels namespace and workload.
    #[schemars(length(min = 1, max = 4096))]
    pub query: String,
}

const fn prometheus_port() -> i32 {
    9090
}

kind!(
    ForeignCluster,
    ForeignClusterSpec,
    ForeignClusterStatus,
    "A ForeignCluster is a member of the fleet: who it is, how it is reached, and what is known \
     about its health, room and distance. The labels of its metadata, such as \
     topology.kubernetes.io/region, are what cluster selectors match.",
    ROOT_RULES
);
