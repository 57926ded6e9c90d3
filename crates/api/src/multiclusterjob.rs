//! MultiClusterJob: one Job, placed over many clusters.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    conditions::conditions_schema,
    placement::{
        PLACEMENT_RULES, PendingPlacement, Placement, PlacementCause, PlacementState, ReplicasMode,
        Reservation, Resources, one,
    },
    quantity::quantities_schema,
    schema::{Rule, kind, rule, rules},
    template::{PodTemplate, PreservedObject},
};

/// A set of Jobs of the same name on one or more clusters.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "portolan.dev",
    version = "v1alpha1",
    kind = "MultiClusterJob",
    plural = "multiclusterjobs",
    shortname = "mcj",
    category = "portolan",
    namespaced,
    schema = "manual",
    status = "MultiClusterJobStatus",
    derive = "PartialEq",
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(name = "Completions", type_ = "string", json_path = ".status.completionsSummary"),
    printcolumn(name = "Active", type_ = "integer", json_path = ".status.active"),
    printcolumn(name = "Failed", type_ = "integer", json_path = ".status.failed"),
    printcolumn(name = "Locations", type_ = "string", json_path = ".status.locationsSummary"),
    printcolumn(name = "Policy", type_ = "string", json_path = ".spec.placementPolicy", priority = 1),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[PLACEMENT_RULES, RULES])))]
pub struct MultiClusterJobSpec {
    /// How clusters are chosen.
    #[serde(flatten)]
    pub placement: Placement,

    /// How many pods must finish successfully: in every location, or in total, as countMode says. It cannot
    /// be changed.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub completions: i32,

    /// How many pods run at the same time at most, counted like completions.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub parallelism: i32,

    /// Whether completions and parallelism count for each location or for all of them together. It cannot be
    /// changed.
    #[serde(default, rename = "countMode")]
    pub completions_mode: ReplicasMode,

    /// Whether the pods of a location are numbered, as in a Job. It cannot be changed.
    #[serde(default)]
    pub completion_mode: CompletionMode,

    /// How often the Job in a cluster replaces a failed pod before it gives up. If it is not given, it is 6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub backoff_limit: Option<i32>,

    /// How many seconds the job may take from its start before it is stopped and counted as failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub active_deadline_seconds: Option<i64>,

    /// How many seconds after its end the job is deleted, with its Jobs in all clusters. If it is not given, it
    /// stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i32>,

    /// While it is true, no pod runs. Finished work is never run again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,

    /// What happens to the unfinished completions of a cluster whose Job has failed.
    #[serde(default)]
    pub on_failure: OnJobFailure,

    /// How often unfinished completions go to another cluster before the job fails. It needs onFailure
    /// RetryElsewhere. If it is not given, it is 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub retry_limit: Option<i32>,

    /// How failures of pods are judged by their exit codes and conditions, as in a Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_failure_policy: Option<PreservedObject>,

    /// The pods that are run, as in a Job. ConfigMaps and Secrets that it refers to follow it to the clusters. All
    /// fields are kept as written. Each cluster checks them when the Job is made there; what one refuses goes to another
    /// cluster, if the policy allows it.
    pub template: PodTemplate,
}

const RULES: &[Rule] = &[
    rule("self.completions == oldSelf.completions", "completions is immutable: make a new job instead"),
    rule("self.countMode == oldSelf.countMode", "countMode is immutable: make a new job instead"),
    rule(
        "self.completionMode == oldSelf.completionMode",
        "completionMode is immutable: make a new job instead",
    ),
    rule(
        "(has(oldSelf.suspend) && oldSelf.suspend) || self.template == oldSelf.template",
        "template is immutable unless the job is suspended: make a new job instead",
    ),
    rule(
        "self.completionMode != 'Indexed' || self.countMode == 'PerLocation'",
        "completionMode Indexed needs countMode PerLocation: indexes cannot be divided over clusters",
    ),
    rule(
        "!has(self.retryLimit) || self.onFailure == 'RetryElsewhere'",
        "retryLimit needs onFailure: RetryElsewhere",
    ),
];

const ROOT_RULES: &[Rule] = &[rule(
    "size(self.metadata.name) <= 63",
    "the name of a MultiClusterJob must have at most 63 characters, since it becomes a label of its pods",
)];

/// Whether the pods of a job are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CompletionMode {
    /// All pods are alike.
    #[default]
    NonIndexed,
    /// Every pod has an index, in each location from 0 on.
    Indexed,
}

/// What happens when the Job in one cluster has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnJobFailure {
    /// The whole job has failed.
    #[default]
    Fail,
    /// The completions that are still open go to another cluster.
    RetryElsewhere,
}

/// What was placed and how far it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MultiClusterJobStatus {
    /// The generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What was found out: Ready, Placed, Complete, Failed, Suspended, ToCloud, Unreachable, DependenciesReady. Ready
    /// is true while the job runs as it was asked to and when it is complete; its reason is the state of the job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// How many completions are asked for, summed over all clusters.
    #[serde(default)]
    pub completions: i32,
    /// How many pods run, summed over all clusters.
    #[serde(default)]
    pub active: i32,
    /// How many pods have finished successfully, summed over all clusters.
    #[serde(default)]
    pub succeeded: i32,
    /// How many pods have failed, summed over all clusters.
    #[serde(default)]
    pub failed: i32,
    /// How many completions have no cluster.
    #[serde(default)]
    pub pending_completions: i32,
    /// How often open completions went to another cluster because the Job in one had failed.
    #[serde(default)]
    pub retries: i32,
    /// Finished completions out of those asked for, such as 3/10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions_summary: Option<String>,
    /// When the first Job was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the last completion finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// The names of the clusters that hold a part of the job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub locations: Vec<String>,
    /// The locations with their completions, such as paris=2,rome=3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locations_summary: Option<String>,
    /// What each cluster holds. The parallelism in it is the reservation of room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["cluster"]))]
    pub placements: Vec<JobPlacementStatus>,
    /// For completions without a cluster: why each cluster did not take them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["cluster"]))]
    pub pending: Vec<PendingPlacement>,
    /// What one pod requests, by resource.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub resource_requests: Resources,
    /// Who decided the placements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// What one cluster holds of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobPlacementStatus {
    /// The name of the cluster.
    pub cluster: String,
    /// How many completions the cluster is to bring, finished ones included.
    #[serde(default)]
    pub completions: i32,
    /// How many pods it runs at the same time at most.
    #[serde(default)]
    pub parallelism: i32,
    /// How many pods run, as last reported by the cluster.
    #[serde(default)]
    pub active: i32,
    /// How many completions are finished. The number never goes down.
    #[serde(default)]
    pub succeeded: i32,
    /// How many pods have failed, as last reported by the cluster.
    #[serde(default)]
    pub failed: i32,
    /// Which Job for this part it is: a Job that was lost or replaced is followed by one for what is still open.
    #[serde(default)]
    pub attempt: i32,
    /// How many completions were finished before that Job.
    #[serde(default)]
    pub finished_before: i32,
    /// How many pods had failed before that Job.
    #[serde(default)]
    pub failed_before: i32,
    /// How many completions the cluster had at most when open ones were given to other clusters.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub given: i32,
    /// Why its open completions were given to other clusters, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<JobRelease>,
    /// Why this cluster was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<PlacementCause>,
    /// How far the placement is in this cluster.
    #[serde(default)]
    pub state: PlacementState,
    /// One word in CamelCase that says why the placement is in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A sentence that says why the placement is in this state, and what would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When the cluster last reported these numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Time>,
}

/// Why the open completions of a cluster were given to other clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum JobRelease {
    /// Its Job has failed.
    Failed,
    /// It was silent for longer than replaceAfter, or left the fleet. What it finishes meanwhile may run twice; it is
    /// counted once.
    Silent,
    /// Not a single pod of them found a node there, and the policy found another cluster with room.
    NoRoom,
    /// It did not take the Job (its name is taken there, the cluster refused it, or the namespace is closed), and the
    /// policy found another cluster for them.
    Refused,
}

kind!(
    MultiClusterJob,
    MultiClusterJobSpec,
    MultiClusterJobStatus,
    "A MultiClusterJob is a set of Jobs of the same name on one or more clusters. It is written like a Job, with the \
     clusters or the policy that chooses them added. Finished work is never run again.",
    ROOT_RULES
);
