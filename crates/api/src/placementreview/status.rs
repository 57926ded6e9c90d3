//! The answer to a PlacementReview.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ReviewedKind;
use crate::{
    conditions::conditions_schema,
    duration::Duration,
    placement::{PlacementCause, Reservation},
};

/// What was found out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementReviewStatus {
    /// The generation of the spec that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Whether the review was answered: Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// When the review was answered. It is deleted some minutes later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_time: Option<Time>,
    /// The controller that answered, and its term.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<Reservation>,
    /// The worst result of all objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ReviewResult>,
    /// The answer for each object, deployments and jobs first and services last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub objects: Vec<ObjectReview>,
}

/// What would come of an object. Of several, the last one in this order counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum ReviewResult {
    /// Nothing would change.
    #[default]
    Unchanged,
    /// Replicas would come, move or go, or pods would be replaced.
    Changes,
    /// Something has no cluster, or a member refuses it.
    Pending,
    /// Running replicas would go without a replacement.
    Removes,
    /// The manifest or its template is invalid: what runs would stay as it is.
    Invalid,
}

/// The answer for one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReview {
    /// The kind of the object.
    pub kind: ReviewedKind,
    /// The name of the object.
    pub name: String,
    /// What would come of it.
    #[serde(default)]
    pub result: ReviewResult,
    /// Whether the object exists in the hub.
    #[serde(default)]
    pub exists: bool,
    /// Whether nothing is done about it for now: it is paused or suspended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// The placement in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub summary: Vec<String>,
    /// The clusters: in a plan those that hold something before or after, in an explanation all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub clusters: Vec<ClusterReview>,
    /// How many replicas, completions or Services have no cluster.
    #[serde(default)]
    pub pending: i32,
    /// For what is pending: why each cluster does not take it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub refusals: Vec<ReviewRefusal>,
    /// How many running replicas would go without a replacement.
    #[serde(default)]
    pub removed_running_replicas: i32,
    /// The pods that would be replaced by pods of a new template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// What is wrong with the manifest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub errors: Vec<ReviewError>,
    /// What else there is to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub notes: Vec<String>,
}

/// One cluster's part in an object's placement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReview {
    /// The name of the cluster.
    pub cluster: String,
    /// How many replicas or completions it has by the last decision. A Service counts as 1.
    #[serde(default)]
    pub before: i32,
    /// How many it would have once everything has settled.
    #[serde(default)]
    pub after: i32,
    /// How many replicas are ready there now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<i32>,
    /// Why the cluster was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<PlacementCause>,
    /// Why, in a sentence.
    #[serde(default)]
    pub verdict: String,
    /// How many pods would be replaced there by pods of a new template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_pods: Option<i32>,
    /// Why the cluster refuses the object, although it was placed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<ReviewError>,
    /// What was asked of the cluster, in order, up to the first filter that it did not pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub filters: Vec<ReviewFilter>,
    /// The most replicas or pods that it can hold, those it has included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fits: Option<i32>,
    /// What is free there for the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<FreeRoom>,
    /// Its place in the order of the policy, from 1 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<i32>,
    /// The traffic that the object receives there, in thousandths of requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_milli_requests: Option<i64>,
    /// How far it is from the location that it would stand in for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<ReviewDistance>,
    /// What workloads of this namespace hold there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub reserved: Vec<ReservedRoom>,
    /// How many replicas and pods workloads of other namespaces hold there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_by_other_namespaces: Option<i64>,
    /// For a job: its part in the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobCounts>,
    /// For a service: its endpoints in the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<EndpointCounts>,
    /// What else there is to know of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Why a cluster does not take what is pending.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewRefusal {
    /// The name of the cluster.
    pub cluster: String,
    /// One word in CamelCase.
    pub reason: String,
    /// A sentence with the numbers and what would help.
    #[serde(default)]
    pub message: String,
}

/// Something that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewError {
    /// The member that says so; if none is given, the hub does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// One word in CamelCase.
    pub reason: String,
    /// A sentence that says what is wrong and what would help.
    #[serde(default)]
    pub message: String,
}

/// Pods that would be replaced by pods of a new template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    /// How many pods would be replaced in all clusters together.
    #[serde(default)]
    pub pods: i32,
    /// The containers whose image would change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub images: Vec<ContainerChange>,
    /// Other fields of the template that would change, such as spec.containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub fields: Vec<String>,
    /// Whether all pods of a cluster end before new ones start: the type of the strategy is Recreate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recreate: bool,
}

/// A container whose image would change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerChange {
    /// The name of the container.
    pub container: String,
    /// Its present image; empty if the container is new.
    #[serde(default)]
    pub from: String,
    /// Its new image; empty if the container is removed.
    #[serde(default)]
    pub to: String,
}

/// Something that was asked of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewFilter {
    /// The filter: open, selector, latency, taints or room.
    pub name: String,
    /// Whether the cluster passed it.
    #[serde(default)]
    pub passed: bool,
    /// The numbers.
    #[serde(default)]
    pub message: String,
}

/// What is free in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FreeRoom {
    /// Thousandths of a CPU.
    #[serde(default)]
    pub cpu_millis: i64,
    /// Bytes of memory.
    #[serde(default)]
    pub memory_bytes: i64,
}

/// The distance of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewDistance {
    /// The other cluster.
    pub from: String,
    /// The round-trip time between the two.
    pub rtt: Duration,
}

/// What a workload holds in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReservedRoom {
    /// The kind in short and the name, such as mcd/web.
    pub workload: String,
    /// How many replicas or pods.
    #[serde(default)]
    pub replicas: i32,
}

/// A job's part in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobCounts {
    /// How many pods may run there at the same time, by the last decision.
    #[serde(default)]
    pub parallelism_before: i32,
    /// How many pods may run there at the same time.
    #[serde(default)]
    pub parallelism_after: i32,
    /// How many completions are finished.
    #[serde(default)]
    pub succeeded: i32,
    /// How many pods have failed.
    #[serde(default)]
    pub failed: i32,
    /// How often the Job was replaced there.
    #[serde(default)]
    pub attempt: i32,
}

/// The endpoints of a service in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointCounts {
    /// How many are ready.
    #[serde(default)]
    pub ready: i32,
    /// How many are not.
    #[serde(default)]
    pub not_ready: i32,
    /// Whether the cluster answers; if not, these are the last numbers known.
    #[serde(default)]
    pub answers: bool,
}

impl ClusterReview {
    /// Whether the cluster would have something else than now.
    #[must_use]
    pub fn changes(&self) -> bool {
        let pods = self.job.as_ref().is_some_and(|job| job.parallelism_before != job.parallelism_after);
        self.before != self.after || pods || self.replaced_pods.is_some_and(|pods| pods > 0)
    }
}
