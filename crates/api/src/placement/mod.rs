//! What MultiClusterDeployment and MultiClusterJob share: how clusters are chosen, and what was placed where.

mod cluster;
mod policy;
mod status;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::LabelSelector};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

pub use self::{
    cluster::{
        ClusterSpread, ClusterTaint, ClusterToleration, ClusterWeight, MaxLatency, TaintEffect,
        TolerationOperator, WhenUnsatisfiable,
    },
    policy::{DistancePolicy, DriftPolicy, OnUnreachable, PlacementPolicy, ReplicasMode},
    status::{PendingPlacement, PlacementCause, PlacementState, PlacementStatus, Reservation},
};
use crate::{
    duration::Duration,
    schema::{Rule, rule},
    selector::label_selector_schema,
};

/// Resource quantities by resource name.
pub type Resources = BTreeMap<String, Quantity>;

pub(crate) const fn one() -> i32 {
    1
}

/// How clusters are chosen for a workload. Its fields stand directly in the workload's spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// The names of the preferred clusters (of their ForeignClusters). If it is given, the workload is placed on
    /// exactly these clusters, apart from substitution and, of a MultiClusterDeployment, bursting. It goes with
    /// cluster-affinity only.
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
        "!has(self.spread) || size(self.spread) == 0 || !has(self.locations) || size(self.locations) == 0",
        "spread and locations exclude each other: spread is about clusters that a placementPolicy chooses",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_follows_from_the_locations() {
        let mut placement = Placement::default();
        assert_eq!(placement.effective_policy(), PlacementPolicy::WorstFit);
        assert_eq!(placement.effective_locations(), 1);
        placement.number_of_locations = Some(3);
        assert_eq!(placement.effective_locations(), 3);
        placement = Placement { locations: vec!["a".into(), "b".into()], ..Placement::default() };
        assert_eq!(placement.effective_policy(), PlacementPolicy::ClusterAffinity);
        assert_eq!(placement.effective_locations(), 2);
    }

    #[test]
    fn names_of_policies_are_those_of_the_manifests() {
        for policy in [
            PlacementPolicy::ClusterAffinity,
            PlacementPolicy::WorstFit,
            PlacementPolicy::BestFit,
            PlacementPolicy::TrafficAware,
        ] {
            assert_eq!(serde_json::to_value(policy).unwrap(), policy.as_str());
        }
    }
}
