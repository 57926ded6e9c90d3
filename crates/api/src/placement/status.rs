//! What was placed where, and what could not be.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one cluster holds of a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStatus {
    /// The name of the cluster.
    pub cluster: String,
    /// How many replicas the cluster is to hold. This number is the reservation of room in that cluster.
    #[serde(default)]
    pub replicas: i32,
    /// How many of these replicas only stay here for want of another cluster that takes them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub staying_replicas: i32,
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
    /// When the cluster last reported these numbers. If the cluster is silent, they are as old as this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Time>,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
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
    /// It is to be left, and keeps what no other cluster has room for yet.
    NoAlternative,
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

/// A cluster that did not take replicas or completions that have no cluster, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingPlacement {
    /// The cluster that was considered.
    pub cluster: String,
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
