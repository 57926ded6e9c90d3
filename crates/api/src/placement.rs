//! What MultiClusterDeployment and MultiClusterJob share: how clusters are chosen, and what was placed where.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{
    api::resource::Quantity,
    apis::meta::v1::{LabelSelector, Time},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    duration::Duration,
    schema::{Rule, rule},
    selector::label_selector_schema,
};

/// How clusters are chosen for a workload. Its fields stand directly in the workload's spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// The names of the preferred clusters (of their ForeignClusters). If it is given, the workload is placed on
    /// exactly these clusters, apart from substitution and bursting. It goes with cluster-affinity only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "locations_schema")]
    pub locations: Vec<String>,

    /// How clusters are prioritised once those without room are filtered out. If it is not given, it is
    /// cluster-affinity when locations are given, and worst-fit otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_policy: Option<PlacementPolicy>,

    /// On how many clusters the workload is placed when the policy chooses them. If it is not given, it is 1. It
    /// cannot be combined with locations, which say the number by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 256))]
    pub number_of_locations: Option<i32>,

    /// Whether another cluster is taken for a preferred one that has no room. It goes with cluster-affinity only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enable_substitution: bool,

    /// Which cluster is taken as the substitute. It needs enableSubstitution. If it is not given, it is
    /// nearest-first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub substitution_policy: Option<DistancePolicy>,

    /// Restricts the clusters to those whose ForeignCluster has matching labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector_schema")]
    pub cluster_selector: Option<LabelSelector>,

    /// Taints of clusters that the workload tolerates. A cluster with a NoSchedule or NoExecute taint that is not
    /// tolerated gets no replicas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub cluster_tolerations: Vec<ClusterToleration>,

    /// How the chosen clusters are spread over regions or other groups of clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["topologyKey"]))]
    pub spread: Vec<ClusterSpread>,

    /// The largest round-trip time from a named cluster at which a cluster may be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_latency: Option<MaxLatency>,

    /// What happens to the replicas of a cluster that does not answer. If it is not given, it is Keep.
    #[serde(default)]
    pub on_unreachable: OnUnreachable,

    /// How long a cluster must be silent before its replicas are replaced elsewhere. It is needed with, and only
    /// with, onUnreachable ReplaceAfter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace_after: Option<Duration>,

    /// What happens when an object in a member no longer is as it was placed there.
    #[serde(default)]
    pub drift_policy: DriftPolicy,
}

fn locations_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 256,
        "x-kubernetes-list-type": "set",
        "items": {
            "type": "string",
            "maxLength": 63,
            "x-kubernetes-validations": [{
                "rule": "self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
                "message": "must be the name of one ForeignCluster, such as cluster2",
            }],
        },
    })
}

impl Placement {
    /// The policy that is in force, given or implied.
    pub fn effective_policy(&self) -> PlacementPolicy {
        match self.placement_policy {
            Some(policy) => policy,
            None if self.locations.is_empty() => PlacementPolicy::WorstFit,
            None => PlacementPolicy::ClusterAffinity,
        }
    }

    /// The number of clusters asked for: the locations, or `numberOfLocations`, at least 1.
    pub fn effective_locations(&self) -> usize {
        if self.locations.is_empty() {
            usize::try_from(self.number_of_locations.unwrap_or(1)).unwrap_or(1).max(1)
        } else {
            self.locations.len()
        }
    }
}

/// The rules of [`Placement`], which stand at the spec that its fields are part of.
pub(crate) const PLACEMENT_RULES: &[Rule] = &[
    rule(
        "!has(self.locations) || size(self.locations) == 0 || !has(self.placementPolicy) \
         || self.placementPolicy == 'cluster-affinity'",
        "locations name the clusters, so placementPolicy must be cluster-affinity or absent",
    ),
    rule(
        "!has(self.placementPolicy) || self.placementPolicy != 'cluster-affinity' \
         || (has(self.locations) && size(self.locations) > 0)",
        "placementPolicy cluster-affinity needs locations",
    ),
    rule(
        "!has(self.numberOfLocations) || !has(self.locations) || size(self.locations) == 0",
        "numberOfLocations and locations exclude each other: the locations say the number by themselves",
    ),
    rule(
        "!has(self.enableSubstitution) || !self.enableSubstitution \
         || (has(self.locations) && size(self.locations) > 0)",
        "enableSubstitution needs locations: without preferred clusters there is nothing to substitute",
    ),
    rule(
        "!has(self.substitutionPolicy) || (has(self.enableSubstitution) && self.enableSubstitution)",
        "substitutionPolicy needs enableSubstitution: true",
    ),
    rule(
        "!has(self.numberOfLocations) || !has(self.spread) \
         || self.spread.all(s, !has(s.minDomains) || s.minDomains <= self.numberOfLocations)",
        "spread.minDomains must not be greater than numberOfLocations",
    ),
    rule(
        "!has(self.onUnreachable) || self.onUnreachable != 'ReplaceAfter' || has(self.replaceAfter)",
        "onUnreachable ReplaceAfter needs replaceAfter, such as 10m",
    ),
    rule(
        "!has(self.replaceAfter) || (has(self.onUnreachable) && self.onUnreachable == 'ReplaceAfter')",
        "replaceAfter needs onUnreachable: ReplaceAfter",
    ),
];

/// How clusters with room are prioritised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementPolicy {
    /// The clusters named in locations.
    ClusterAffinity,
    /// The clusters with the most available CPU and memory first.
    WorstFit,
    /// The clusters with the least available CPU and memory first.
    BestFit,
    /// The clusters whose part of the application receives the most traffic first.
    TrafficAware,
}

impl PlacementPolicy {
    /// The name as it stands in a manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClusterAffinity => "cluster-affinity",
            Self::WorstFit => "worst-fit",
            Self::BestFit => "best-fit",
            Self::TrafficAware => "traffic-aware",
        }
    }
}

impl std::fmt::Display for PlacementPolicy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// How a cluster is chosen that stands in for another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DistancePolicy {
    /// The cluster with the smallest measured round-trip time first.
    #[default]
    NearestFirst,
}

/// What happens to the replicas of a cluster that does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum OnUnreachable {
    /// They are taken to be still running; nothing is started elsewhere.
    #[default]
    Keep,
    /// They are replaced in other clusters once the cluster has been silent for replaceAfter. When it comes back,
    /// the surplus is removed once the rest is healthy.
    ReplaceAfter,
}

/// What happens when somebody changes an object that Portolan placed in a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum DriftPolicy {
    /// The object is set back to what was placed.
    #[default]
    Correct,
    /// The object is left alone and the condition Drifted says what differs.
    Report,
}

/// How the number of replicas is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum ReplicasMode {
    /// Every location gets the whole number.
    #[default]
    PerLocation,
    /// The number is divided over the locations, by weights if there are any, without losing or adding one.
    Total,
}

/// A taint of a cluster that a workload puts up with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.operator) || self.operator != 'Exists' || !has(self.value)",
    "message": "a toleration with operator Exists takes no value",
}, {
    "rule": "has(self.key) || (has(self.operator) && self.operator == 'Exists')",
    "message": "a toleration without key needs operator Exists: it tolerates every taint",
}]))]
pub struct ClusterToleration {
    /// The key of the taint. If it is not given, every taint is tolerated, and the operator must be Exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 316))]
    pub key: Option<String>,
    /// How the value is compared.
    #[serde(default)]
    pub operator: TolerationOperator,
    /// The value of the taint, with operator Equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub value: Option<String>,
    /// The effect that is tolerated. If it is not given, all effects are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
}

impl ClusterToleration {
    /// Whether this toleration covers `taint`.
    pub fn tolerates(&self, taint: &ClusterTaint) -> bool {
        let key = self.key.as_ref().is_none_or(|key| *key == taint.key);
        let effect = self.effect.is_none_or(|effect| effect == taint.effect);
        let value = match self.operator {
            TolerationOperator::Exists => true,
            TolerationOperator::Equal => {
                self.value.as_deref().unwrap_or("") == taint.value.as_deref().unwrap_or("")
            }
        };
        key && effect && value
    }
}

/// How a toleration compares the value of a taint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TolerationOperator {
    /// The values must be equal.
    #[default]
    Equal,
    /// Any value will do.
    Exists,
}

/// A mark on a cluster that keeps workloads away unless they tolerate it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterTaint {
    /// The key of the taint.
    #[schemars(length(min = 1, max = 316))]
    pub key: String,
    /// The value of the taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub value: Option<String>,
    /// What happens to workloads that do not tolerate it.
    pub effect: TaintEffect,
}

/// What a taint does to workloads that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// Nothing new is placed on the cluster.
    NoSchedule,
    /// The cluster is chosen only if no other one will do.
    PreferNoSchedule,
    /// Nothing new is placed on the cluster, and what runs there is moved away.
    NoExecute,
}

/// How chosen clusters are spread over groups of clusters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpread {
    /// The label of ForeignClusters whose values form the groups, such as topology.kubernetes.io/region.
    #[serde(default = "region_label")]
    #[schemars(length(min = 1, max = 316))]
    pub topology_key: String,
    /// By how many chosen clusters two groups may differ at most.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 256))]
    pub max_skew: i32,
    /// The least number of groups in which there must be a chosen cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 256))]
    pub min_domains: Option<i32>,
    /// What happens when the spread cannot be had.
    #[serde(default)]
    pub when_unsatisfiable: WhenUnsatisfiable,
}

fn region_label() -> String {
    "topology.kubernetes.io/region".to_owned()
}

pub(crate) const fn one() -> i32 {
    1
}

/// What happens when a spread cannot be had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WhenUnsatisfiable {
    /// What would break the spread stays pending.
    #[default]
    DoNotSchedule,
    /// The spread is kept as well as it can be.
    ScheduleAnyway,
}

/// The share of one cluster when replicas are divided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterWeight {
    /// The name of the cluster.
    #[schemars(length(min = 1, max = 253))]
    pub cluster: String,
    /// Its share in proportion to the other weights. Clusters that are not listed have weight 1.
    #[schemars(range(min = 0, max = 1000))]
    pub weight: i32,
}

/// A bound on the distance between clusters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaxLatency {
    /// The name of the cluster from which the latency counts.
    #[schemars(length(min = 1, max = 253))]
    pub from: String,
    /// The largest round-trip time, such as 20ms.
    pub rtt: Duration,
}

/// What one cluster holds of a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStatus {
    /// The name of the cluster.
    pub cluster: String,
    /// How many replicas the cluster is to hold. This number is the reservation of room in that cluster.
    #[serde(default)]
    pub replicas: i32,
    /// How many replicas are ready, as last reported by the cluster.
    #[serde(default)]
    pub ready_replicas: i32,
    /// How many replicas have the present template, as last reported by the cluster.
    #[serde(default)]
    pub updated_replicas: i32,
    /// How many replicas are available, as last reported by the cluster.
    #[serde(default)]
    pub available_replicas: i32,
    /// Why this cluster was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<PlacementCause>,
    /// The preferred cluster that this one stands in for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub substitute_for: Option<String>,
    /// How far the placement is in this cluster.
    #[serde(default)]
    pub state: PlacementState,
    /// One word in CamelCase that says why the placement is in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A sentence that says why the placement is in this state, and what would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The images that run in this cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub images: Vec<String>,
    /// The spec's generation that was last applied in this cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_generation: Option<i64>,
    /// When the cluster last reported these numbers. If the cluster is silent, they are as old as this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Time>,
}

/// Why a cluster was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum PlacementCause {
    /// It is one of the locations.
    Preferred,
    /// The placement policy chose it.
    Policy,
    /// It stands in for a location without room.
    Substitution,
    /// It takes what does not fit in the first clusters.
    Bursting,
    /// It is a cloud cluster that took what fits nowhere else.
    Cloud,
    /// It took over from a cluster that has been silent for too long.
    Replacement,
}

/// How far a placement is in a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum PlacementState {
    /// Room is reserved; the cluster has not been touched yet.
    #[default]
    Reserved,
    /// The objects are in the cluster and are being rolled out.
    Applied,
    /// All replicas are ready.
    Ready,
    /// The cluster refused the objects or cannot run them.
    Failed,
    /// The cluster is silent; the numbers are the last ones known.
    Unknown,
    /// The objects are being removed from the cluster.
    Removing,
}

/// Replicas that have no cluster, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingPlacement {
    /// The cluster that was considered.
    pub cluster: String,
    /// How many replicas did not fit in this cluster.
    #[serde(default)]
    pub replicas: i32,
    /// One word in CamelCase that says why the cluster did not take them.
    pub reason: String,
    /// A sentence with the numbers: what was asked for, what is there, what would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Who decided a placement. A write with an older epoch than the recorded one loses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reservation {
    /// The number of the leader's term; it grows with every change of leader.
    pub epoch: i64,
    /// The leader that decided.
    pub holder: String,
    /// When it decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
}

/// Resource quantities by resource name.
pub type Resources = BTreeMap<String, Quantity>;
