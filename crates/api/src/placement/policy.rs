//! The choices that a placement offers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// The number is divided over the locations without losing or adding one; a MultiClusterDeployment may give weights.
    Total,
}
