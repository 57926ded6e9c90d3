//! NamespaceOffloading: extends a namespace to other clusters.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelectorRequirement, Time};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::{
    conditions::conditions_schema,
    schema::{Rule, kind, rule, rules},
    selector::match_expressions,
};

/// The only name that a NamespaceOffloading may have: there is one in a namespace.
pub const OFFLOADING_NAME: &str = "offloading";

/// How a namespace is offloaded.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "portolan.dev",
    version = "v1alpha1",
    kind = "NamespaceOffloading",
    plural = "namespaceoffloadings",
    shortname = "nso",
    shortname = "nsof",
    category = "portolan",
    namespaced,
    schema = "manual",
    status = "NamespaceOffloadingStatus",
    derive = "PartialEq",
    printcolumn(
        name = "NamespaceMappingStrategy",
        type_ = "string",
        json_path = ".spec.namespaceMappingStrategy"
    ),
    printcolumn(name = "PodOffloadingStrategy", type_ = "string", json_path = ".spec.podOffloadingStrategy"),
    printcolumn(name = "OffloadingPhase", type_ = "string", json_path = ".status.offloadingPhase"),
    printcolumn(
        name = "RemoteNamespaceName",
        type_ = "string",
        json_path = ".status.remoteNamespaceName",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[RULES])))]
pub struct NamespaceOffloadingSpec {
    /// How the namespace is called in the other clusters. It cannot be changed.
    #[serde(default)]
    pub namespace_mapping_strategy: NamespaceMappingStrategy,

    /// Where the pods of the namespace may run. Services and other objects are carried over in any case.
    #[serde(default)]
    pub pod_offloading_strategy: PodOffloadingStrategy,

    /// The clusters that the namespace is extended to, by the labels of their virtual nodes. If it is not given,
    /// or has no terms, all peered clusters are selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<ClusterSelector>,
}

const RULES: &[Rule] = &[rule(
    "self.namespaceMappingStrategy == oldSelf.namespaceMappingStrategy",
    "namespaceMappingStrategy is immutable: unoffload the namespace, then offload it again",
)];

const ROOT_RULES: &[Rule] = &[rule(
    "self.metadata.name == 'offloading'",
    "a NamespaceOffloading must have the name offloading: there is one in a namespace",
)];

/// How a namespace is called in other clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NamespaceMappingStrategy {
    /// By its own name, the name of this cluster and a unique suffix, so that it collides with nothing.
    #[default]
    DefaultName,
    /// By its own name. If the name is taken in a cluster, the namespace is not extended to that cluster.
    EnforceSameName,
}

/// Where the pods of an offloaded namespace may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PodOffloadingStrategy {
    /// On local nodes and in other clusters.
    #[default]
    LocalAndRemote,
    /// On local nodes only.
    Local,
    /// In other clusters only.
    Remote,
}

/// Clusters by the labels of their virtual nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSelector {
    /// Alternatives: a cluster is selected if it meets all requirements of at least one term.
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub node_selector_terms: Vec<ClusterSelectorTerm>,
}

/// Requirements that must all be met.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSelectorTerm {
    /// Requirements on labels. A term without any selects no cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "match_expressions_schema")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

fn match_expressions_schema(_: &mut SchemaGenerator) -> Schema {
    Schema::try_from(match_expressions()).unwrap_or_default()
}

/// Where the namespace has been extended to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceOffloadingStatus {
    /// The generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What was found out: Ready, Offloaded, Unreachable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// How far the offloading is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offloading_phase: Option<OffloadingPhase>,
    /// The name of the namespace in the other clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_namespace_name: Option<String>,
    /// For every peered cluster whether it is selected, and whether the namespace is there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remote_namespaces_conditions: BTreeMap<String, Vec<RemoteNamespaceCondition>>,
}

/// How far an offloading is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OffloadingPhase {
    /// The namespace exists in all selected clusters.
    Ready,
    /// No cluster is selected.
    NoClusterSelected,
    /// The namespaces are being made.
    InProgress,
    /// The namespace could not be made in some clusters.
    SomeFailed,
    /// The namespace could not be made in any cluster.
    AllFailed,
    /// The namespaces are being removed.
    Terminating,
}

/// What is known about the namespace in one cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoteNamespaceCondition {
    /// OffloadingRequired: the cluster is selected. Ready: the namespace is there.
    #[serde(rename = "type")]
    pub type_: RemoteNamespaceConditionType,
    /// Whether the condition holds.
    pub status: RemoteNamespaceConditionStatus,
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

/// What a condition of a remote namespace is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum RemoteNamespaceConditionType {
    /// The cluster is selected.
    OffloadingRequired,
    /// The namespace is there.
    Ready,
}

/// Whether a condition of a remote namespace holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RemoteNamespaceConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// The cluster is silent.
    Unknown,
}

kind!(
    NamespaceOffloading,
    NamespaceOffloadingSpec,
    NamespaceOffloadingStatus,
    "A NamespaceOffloading extends its namespace to other clusters: a twin of the namespace is made there, pods may \
     run there, and services and configuration are carried over. There is one in a namespace, named offloading.",
    ROOT_RULES
);
