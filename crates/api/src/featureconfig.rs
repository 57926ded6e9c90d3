//! FeatureConfig: features that every selected cluster must have.

use k8s_openapi::apimachinery::pkg::{
    api::resource::Quantity,
    apis::meta::v1::{Condition, LabelSelector, Time},
    util::intstr::IntOrString,
};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    conditions::conditions_schema,
    duration::Duration,
    quantity::quantity_schema,
    schema::{Rule, kind, rule, rules},
    selector::label_selector_schema,
};

/// Features, the clusters that need them, and how they are rolled out.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "portolan.dev",
    version = "v1alpha1",
    kind = "FeatureConfig",
    plural = "featureconfigs",
    shortname = "fcfg",
    category = "portolan",
    schema = "manual",
    status = "FeatureConfigStatus",
    derive = "PartialEq",
    printcolumn(name = "CPU policy", type_ = "string", json_path = ".spec.cpumanagementpolicy"),
    printcolumn(name = "PodPreset", type_ = "boolean", json_path = ".spec.podpreset"),
    printcolumn(name = "NetworkPolicy", type_ = "boolean", json_path = ".spec.networkpolicy"),
    printcolumn(name = "Clusters", type_ = "string", json_path = ".status.clustersSummary"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[RULES])))]
pub struct FeatureConfigSpec {
    /// How the kubelets give CPUs to containers.
    #[serde(default, rename = "cpumanagementpolicy", skip_serializing_if = "Option::is_none")]
    pub cpu_management_policy: Option<CpuManagementPolicy>,

    /// The CPU that is kept free for the system, which the policy static needs. If it is not given, and a node
    /// keeps none free by itself, it is 500m.
    #[serde(default, rename = "reservedCPU", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "quantity_schema")]
    pub reserved_cpu: Option<Quantity>,

    /// Whether PodPresets are served and injected into new pods.
    #[serde(default, rename = "podpreset", skip_serializing_if = "Option::is_none")]
    pub pod_preset: Option<bool>,

    /// Whether NetworkPolicies are enforced.
    #[serde(default, rename = "networkpolicy", skip_serializing_if = "Option::is_none")]
    pub network_policy: Option<bool>,

    /// The clusters, by the labels of their ForeignClusters. If it is not given, all clusters are selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector_schema")]
    pub cluster_selector: Option<LabelSelector>,

    /// The nodes of each cluster that are reconfigured. If it is not given, all nodes are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector_schema")]
    pub node_selector: Option<LabelSelector>,

    /// Whether missing features are only reported or also enabled.
    #[serde(default)]
    pub mode: FeatureMode,

    /// In which steps clusters and nodes are changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<FeatureRollout>,

    /// What happens to the clusters when this object is deleted.
    #[serde(default)]
    pub deletion_policy: FeatureDeletionPolicy,

    /// How often it is checked that the features still work.
    #[serde(default = "five_minutes")]
    pub check_interval: Duration,
}

const fn five_minutes() -> Duration {
    Duration::from_secs(300)
}

const RULES: &[Rule] = &[
    rule(
        "has(self.cpumanagementpolicy) || has(self.podpreset) || has(self.networkpolicy)",
        "at least one of cpumanagementpolicy, podpreset and networkpolicy must be given",
    ),
    rule(
        "!has(self.reservedCPU) || (has(self.cpumanagementpolicy) && self.cpumanagementpolicy == 'static')",
        "reservedCPU needs cpumanagementpolicy: static",
    ),
    rule("duration(self.checkInterval) >= duration('1s')", "checkInterval must be at least 1s"),
];

/// How the kubelets give CPUs to containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CpuManagementPolicy {
    /// All containers share all CPUs.
    None,
    /// Containers of Guaranteed pods that ask for whole CPUs get them for themselves.
    Static,
}

/// Whether features are enabled or only looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FeatureMode {
    /// Missing features are enabled.
    #[default]
    Enforce,
    /// Missing features are reported.
    Observe,
}

/// What happens to the clusters when a FeatureConfig is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FeatureDeletionPolicy {
    /// They stay as they are.
    #[default]
    Keep,
    /// They are set back to how they were found, byte for byte.
    Restore,
}

/// In which steps clusters and nodes are changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[ROLLOUT_RULES])))]
pub struct FeatureRollout {
    /// How many clusters are changed at the same time. If it is not given, it is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_concurrent_clusters: Option<i32>,
    /// How many nodes of a cluster may be out of service at the same time: a number, or a percentage such as 10%.
    /// If it is not given, it is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "max_unavailable_schema")]
    pub max_unavailable: Option<IntOrString>,
    /// Nodes that are changed before all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
    /// How long draining a node may take. If it is not given, it is 10m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_timeout: Option<Duration>,
    /// How long a changed node may take to be ready before it is set back. If it is not given, it is 5m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_timeout: Option<Duration>,
    /// While it is true, nothing is changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

const ROLLOUT_RULES: &[Rule] = &[rule(
    "!has(self.maxUnavailable) || string(self.maxUnavailable).matches('^([1-9][0-9]{0,3}|([1-9][0-9]?|100)%)$')",
    "maxUnavailable must be a number of at least 1, or a percentage from 1% to 100%",
)];

fn max_unavailable_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-int-or-string": true, "maxLength": 4 })
}

/// Nodes that are changed first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Canary {
    /// The ForeignCluster in which it begins. If it is not given, it is the first by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub cluster: Option<String>,
    /// How many nodes of that cluster are changed first.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1000))]
    pub nodes: i32,
    /// How long they must work before the others follow.
    #[serde(default = "ten_minutes")]
    pub soak: Duration,
}

const fn one() -> i32 {
    1
}

const fn ten_minutes() -> Duration {
    Duration::from_secs(600)
}

/// Which features were found where.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureConfigStatus {
    /// The generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What was found out: Ready, FeaturesEnabled, Progressing, Unreachable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// Clusters that have all features out of those selected, such as 2/3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters_summary: Option<String>,
    /// What was found in each cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["cluster"]))]
    pub clusters: Vec<ClusterFeatures>,
}

/// The features of one cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterFeatures {
    /// The name of the cluster.
    pub cluster: String,
    /// The worst state of its features.
    #[serde(default)]
    pub state: FeatureState,
    /// Features of the cluster as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["feature"]))]
    pub features: Vec<FeatureStatus>,
    /// Features of its nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["node"]))]
    pub nodes: Vec<NodeFeatures>,
}

/// The features of one node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeFeatures {
    /// The name of the node.
    pub node: String,
    /// The worst state of its features.
    #[serde(default)]
    pub state: FeatureState,
    /// Its features.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["feature"]))]
    pub features: Vec<FeatureStatus>,
}

/// What is known about one feature.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureStatus {
    /// The feature, by its field in the spec.
    pub feature: String,
    /// Whether it is there.
    #[serde(default)]
    pub state: FeatureState,
    /// What is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<String>,
    /// What was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<String>,
    /// From what it was concluded: the probe and its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// How it is enabled where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tactic: Option<String>,
    /// A sentence that says what happened, and what would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it was last checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<Time>,
}

/// Whether a feature is there. Unknown is never taken for Enabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum FeatureState {
    /// It was probed and works as asked for.
    Enabled,
    /// It is being enabled.
    Applying,
    /// It is not there.
    Missing,
    /// It cannot be told.
    #[default]
    Unknown,
    /// It could not be enabled and was set back.
    Failed,
}

kind!(
    FeatureConfig,
    FeatureConfigSpec,
    FeatureConfigStatus,
    "A FeatureConfig says which features every selected cluster must have. Missing ones are found by probes, enabled \
     step by step, and checked again and again; the status shows the evidence for every cluster and node."
);
