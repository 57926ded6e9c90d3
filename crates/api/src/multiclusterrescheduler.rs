//! MultiClusterRescheduler: pulls work back from the cloud to the clusters it prefers.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use std::collections::BTreeMap;

use crate::{
    conditions::conditions_schema,
    duration::Duration,
    schema::{Rule, kind, rule, rules},
    selector::label_selector_schema,
};

/// When and how fast work is pulled back.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "portolan.dev",
    version = "v1alpha1",
    kind = "MultiClusterRescheduler",
    plural = "multiclusterreschedulers",
    shortname = "mcr",
    category = "portolan",
    schema = "manual",
    status = "MultiClusterReschedulerStatus",
    derive = "PartialEq",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(name = "Interval", type_ = "string", json_path = ".spec.interval"),
    printcolumn(name = "Moving", type_ = "integer", json_path = ".status.moving"),
    printcolumn(name = "Moved", type_ = "integer", json_path = ".status.moved"),
    printcolumn(name = "Last run", type_ = "date", json_path = ".status.lastRunTime"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[RULES])))]
pub struct MultiClusterReschedulerSpec {
    /// How often workloads on cloud clusters are looked at. Room that appears is noticed at once in any case.
    #[serde(default = "half_a_minute")]
    pub interval: Duration,

    /// How long a workload stays on a cloud cluster at least, so that it does not go back and forth.
    #[serde(default = "five_minutes")]
    pub minimum_stay: Duration,

    /// How long there must be room for a workload in its preferred clusters before it is moved.
    #[serde(default = "half_a_minute")]
    pub room_stable_for: Duration,

    /// How many percent more replicas than those that come must have room in the preferred clusters.
    #[serde(default = "ten")]
    #[schemars(range(min = 0, max = 1000))]
    pub margin: i32,

    /// How long the replicas may take to be ready in the preferred clusters. After that the move is given up.
    #[serde(default = "ten_minutes")]
    pub move_timeout: Duration,

    /// How many workloads are moved at the same time.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pub max_concurrent_moves: i32,

    /// Restricts the workloads to those with matching labels. If it is not given, all of them are looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector_schema")]
    pub workload_selector: Option<LabelSelector>,

    /// While it is true, nothing is moved; the status says what would be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,

    /// While it is true, no further move is begun. Moves under way are ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

const fn half_a_minute() -> Duration {
    Duration::from_secs(30)
}

const fn five_minutes() -> Duration {
    Duration::from_secs(300)
}

const fn ten_minutes() -> Duration {
    Duration::from_secs(600)
}

const fn ten() -> i32 {
    10
}

const fn one() -> i32 {
    1
}

impl Default for MultiClusterReschedulerSpec {
    fn default() -> Self {
        Self {
            interval: half_a_minute(),
            minimum_stay: five_minutes(),
            room_stable_for: half_a_minute(),
            margin: ten(),
            move_timeout: ten_minutes(),
            max_concurrent_moves: one(),
            workload_selector: None,
            dry_run: false,
            paused: false,
        }
    }
}

const RULES: &[Rule] = &[
    rule("!has(self.interval) || duration(self.interval) >= duration('1s')", "interval must be at least 1s"),
    rule(
        "!has(self.moveTimeout) || duration(self.moveTimeout) >= duration('10s')",
        "moveTimeout must be at least 10s",
    ),
];

/// What was moved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MultiClusterReschedulerStatus {
    /// The generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What was found out: Ready, Progressing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// When workloads were last looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_time: Option<Time>,
    /// How many workloads are being moved.
    #[serde(default)]
    pub moving: i32,
    /// How many workloads have been moved so far.
    #[serde(default)]
    pub moved: i64,
    /// The moves under way and the last ones that ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub moves: Vec<Move>,
    /// Workloads that stay on cloud clusters or substitutes, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub staying: Vec<Staying>,
}

/// One workload that is pulled back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Move {
    /// The kind of the workload.
    pub kind: String,
    /// The namespace of the workload.
    pub namespace: String,
    /// The name of the workload.
    pub name: String,
    /// The uid of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The clusters that it leaves, separated by commas.
    pub from: String,
    /// The clusters that it goes to, separated by commas.
    pub to: String,
    /// How many replicas each cluster had before.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub before: BTreeMap<String, i32>,
    /// How many replicas each cluster that it goes to is to have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub targets: BTreeMap<String, i32>,
    /// How many replicas are moved.
    pub replicas: i32,
    /// How far the move is.
    #[serde(default)]
    pub phase: MovePhase,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// A sentence that says what happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How far a move is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MovePhase {
    /// The replicas are being started in the preferred cluster; those in the cloud still run.
    #[default]
    Surging,
    /// The replicas in the preferred cluster are ready; those in the cloud are being removed.
    Draining,
    /// The replicas did not become ready in time and are given back; those in the cloud still run.
    Returning,
    /// The move is done.
    Done,
    /// The move was given up; the replicas in the cloud still run.
    Failed,
}

/// A workload that cannot be pulled back yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Staying {
    /// The kind of the workload.
    pub kind: String,
    /// The namespace of the workload.
    pub namespace: String,
    /// The name of the workload.
    pub name: String,
    /// The uid of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The clusters that it is on and is to leave, separated by commas.
    pub cluster: String,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Since when there has been room for it in its preferred clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_since: Option<Time>,
    /// Before this time no move is tried again: the last one was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Time>,
    /// One word in CamelCase that says why it stays.
    pub reason: String,
    /// A sentence with the numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

kind!(
    defaulted MultiClusterRescheduler,
    MultiClusterReschedulerSpec,
    MultiClusterReschedulerStatus,
    "A MultiClusterRescheduler brings workloads that went to a cloud cluster for want of room back to the clusters they \
     prefer as soon as there is room. It is made once, and needs nothing but a name."
);
