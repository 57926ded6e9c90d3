//! MultiClusterService: one Service in every cluster that holds the pods it selects.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{
    apis::meta::v1::{Condition, Time},
    util::intstr::IntOrString,
};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    conditions::conditions_schema,
    placement::Reservation,
    schema::{Rule, kind, rule, rules},
};

/// A Service that follows a multi-cluster workload.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "portolan.dev",
    version = "v1alpha1",
    kind = "MultiClusterService",
    plural = "multiclusterservices",
    shortname = "mcs",
    category = "portolan",
    namespaced,
    schema = "manual",
    status = "MultiClusterServiceStatus",
    derive = "PartialEq",
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.type"),
    printcolumn(name = "Ports", type_ = "string", json_path = ".status.portsSummary"),
    printcolumn(name = "Endpoints", type_ = "integer", json_path = ".status.readyEndpoints"),
    printcolumn(name = "Locations", type_ = "string", json_path = ".status.locationsSummary"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[RULES])))]
pub struct MultiClusterServiceSpec {
    /// The labels of the pods that are served. The MultiClusterDeployment whose template has these labels decides
    /// the clusters: no locations need to be given.
    #[schemars(schema_with = "selector_schema")]
    pub selector: BTreeMap<String, String>,

    /// The ports that are served.
    #[schemars(length(min = 1, max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["port", "protocol"]))]
    pub ports: Vec<ServicePort>,

    /// How the service is exposed in each cluster, as in a Service.
    #[serde(default, rename = "type")]
    pub type_: ServiceType,

    /// Only None is allowed: the service then has no address of its own, and its name resolves to the pods.
    #[serde(default, rename = "clusterIP", skip_serializing_if = "Option::is_none")]
    pub cluster_ip: Option<ClusterIp>,

    /// Whether one client always reaches the same pod.
    #[serde(default)]
    pub session_affinity: SessionAffinity,

    /// Whether pods that are not ready are served too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub publish_not_ready_addresses: bool,

    /// Whether traffic from outside stays on the node that it reaches. It needs type NodePort or LoadBalancer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_traffic_policy: Option<TrafficPolicy>,

    /// Whether traffic from inside stays on the node that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal_traffic_policy: Option<TrafficPolicy>,
}

fn selector_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "minProperties": 1,
        "maxProperties": 32,
        "additionalProperties": { "type": "string", "maxLength": 63 },
    })
}

const RULES: &[Rule] = &[
    rule(
        "size(self.ports) == 1 || self.ports.all(p, has(p.name) && p.name != '')",
        "every port needs a name when there is more than one",
    ),
    rule(
        "self.ports.all(p, !has(p.name) || self.ports.exists_one(q, has(q.name) && q.name == p.name))",
        "the names of ports must differ from each other",
    ),
    rule(
        "self.type != 'ClusterIP' || self.ports.all(p, !has(p.nodePort))",
        "nodePort needs type NodePort or LoadBalancer",
    ),
    rule("!has(self.clusterIP) || self.type == 'ClusterIP'", "clusterIP None needs type ClusterIP"),
    rule(
        "!has(self.externalTrafficPolicy) || self.type != 'ClusterIP'",
        "externalTrafficPolicy needs type NodePort or LoadBalancer",
    ),
];

const ROOT_RULES: &[Rule] = &[rule(
    "self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",
    "the name of a MultiClusterService must be a DNS label of at most 63 characters that begins with a letter, since \
     Services of that name are made",
)];

/// A port of a service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    /// The name of the port. It is needed when there is more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), extend("x-kubernetes-validations" = [{
        "rule": "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "message": "the name of a port must consist of lower-case letters, digits and '-'",
    }]))]
    pub name: Option<String>,
    /// The protocol.
    #[serde(default)]
    pub protocol: Protocol,
    /// The protocol spoken above it, such as kubernetes.io/h2c.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 316))]
    pub app_protocol: Option<String>,
    /// The port under which the service is reached.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// The number or the name of the port of the pods. If it is not given, it is the same as port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "target_port_schema")]
    pub target_port: Option<IntOrString>,
    /// The port on the nodes of every cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub node_port: Option<i32>,
}

fn target_port_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "minimum": 1,
        "maximum": 65535,
        "minLength": 1,
        "maxLength": 15,
    })
}

/// A transport protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)]
pub enum Protocol {
    #[default]
    Tcp,
    Udp,
    Sctp,
}

/// How a service is exposed in each cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ServiceType {
    /// Under an address inside the cluster.
    #[default]
    #[serde(rename = "ClusterIP")]
    ClusterIp,
    /// Under a port of every node, too.
    NodePort,
    /// Under the address of a load balancer, too.
    LoadBalancer,
}

/// The one value of clusterIP that can be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ClusterIp {
    /// No address of its own.
    #[default]
    None,
}

/// Whether one client always reaches the same pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SessionAffinity {
    /// Any pod answers.
    #[default]
    None,
    /// The client's address decides.
    #[serde(rename = "ClientIP")]
    ClientIp,
}

/// Where traffic may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TrafficPolicy {
    /// To any pod.
    #[default]
    Cluster,
    /// To pods on the same node only.
    Local,
}

/// Where the service is and what serves it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MultiClusterServiceStatus {
    /// The generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What was found out: Ready, Placed, Unreachable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// The MultiClusterDeployments that the service follows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub follows: Vec<String>,
    /// How many endpoints are ready, summed over all clusters.
    #[serde(default)]
    pub ready_endpoints: i32,
    /// The ports in short, such as 80/TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports_summary: Option<String>,
    /// The clusters with their ready endpoints, such as paris=2,rome=3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locations_summary: Option<String>,
    /// The service in each cluster.
    #[serde(default, rename = "placements", skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["cluster"]))]
    pub clusters: Vec<ServiceClusterStatus>,
    /// Who decided where the service is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
}

/// The service in one cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceClusterStatus {
    /// The name of the cluster.
    pub cluster: String,
    /// The addresses of the service in the cluster.
    #[serde(default, rename = "clusterIPs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub cluster_ips: Vec<String>,
    /// The addresses or names of its load balancer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub load_balancer: Vec<String>,
    /// How many endpoints are ready, as last reported by the cluster.
    #[serde(default)]
    pub ready_endpoints: i32,
    /// How many endpoints are not ready, as last reported by the cluster.
    #[serde(default)]
    pub not_ready_endpoints: i32,
    /// One word in CamelCase that says how the service is here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A sentence that says why, and what would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When the cluster last reported these numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Time>,
}

kind!(
    MultiClusterService,
    MultiClusterServiceSpec,
    MultiClusterServiceStatus,
    "A MultiClusterService is a Service of the same name in every cluster that holds the pods it selects. It follows \
     its MultiClusterDeployment wherever that goes. Its annotations, such as io.cilium/global-service, are carried \
     over to the Services.",
    ROOT_RULES
);
