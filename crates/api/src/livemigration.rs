//! LiveMigration: moves one running pod to another cluster, with its memory.

use k8s_openapi::apimachinery::pkg::{
    api::resource::Quantity,
    apis::meta::v1::{Condition, MicroTime, Time},
};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    conditions::conditions_schema,
    duration::Duration,
    quantity::quantity_schema,
    schema::{Rule, kind, rule, rules},
};

/// Which pod goes where, and how.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "portolan.dev",
    version = "v1alpha1",
    kind = "LiveMigration",
    plural = "livemigrations",
    shortname = "lm",
    category = "portolan",
    namespaced,
    schema = "manual",
    status = "LiveMigrationStatus",
    derive = "PartialEq",
    printcolumn(name = "Pod", type_ = "string", json_path = ".spec.podName"),
    printcolumn(name = "Destination", type_ = "string", json_path = ".spec.destinationCluster"),
    printcolumn(name = "Order", type_ = "string", json_path = ".spec.order", priority = 1),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Downtime", type_ = "string", json_path = ".status.downtime"),
    printcolumn(name = "Total", type_ = "string", json_path = ".status.totalDuration", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[RULES])))]
pub struct LiveMigrationSpec {
    /// The pod that is moved, in the namespace of this object. All its containers move together. It cannot be
    /// changed.
    #[schemars(length(min = 1, max = 253))]
    pub pod_name: String,

    /// The ForeignCluster that the pod moves to. It cannot be changed.
    #[schemars(length(min = 1, max = 253))]
    pub destination_cluster: String,

    /// The namespace in the destination. If it is not given, it is the twin of this namespace there. It cannot be
    /// changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub destination_namespace: Option<String>,

    /// The node in the destination. If it is not given, the destination's scheduler chooses one. It cannot be
    /// changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub destination_node: Option<String>,

    /// When the pod at the source is deleted. It cannot be changed.
    #[serde(default)]
    pub order: MigrationOrder,

    /// Bounds within which the migration must stay; beyond them it is aborted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<MigrationLimits>,

    /// How the checkpoint is compressed on its way.
    #[serde(default)]
    pub compression: Compression,

    /// Set it to true to abort the migration. It cannot be set back.
    #[serde(default)]
    pub abort: bool,

    /// How many seconds after its end this object is deleted. If it is not given, it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i32>,
}

const RULES: &[Rule] = &[
    rule("self.podName == oldSelf.podName", "podName is immutable: make a new LiveMigration instead"),
    rule(
        "self.destinationCluster == oldSelf.destinationCluster",
        "destinationCluster is immutable: make a new LiveMigration instead",
    ),
    rule(
        "has(self.destinationNamespace) == has(oldSelf.destinationNamespace) \
         && (!has(self.destinationNamespace) || self.destinationNamespace == oldSelf.destinationNamespace)",
        "destinationNamespace is immutable: make a new LiveMigration instead",
    ),
    rule(
        "has(self.destinationNode) == has(oldSelf.destinationNode) \
         && (!has(self.destinationNode) || self.destinationNode == oldSelf.destinationNode)",
        "destinationNode is immutable: make a new LiveMigration instead",
    ),
    rule("self.order == oldSelf.order", "order is immutable: make a new LiveMigration instead"),
    rule("self.abort || !oldSelf.abort", "abort cannot be taken back: make a new LiveMigration instead"),
];

/// When the pod at the source is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MigrationOrder {
    /// After the restored pod runs. If anything fails, the pod goes on at the source.
    #[default]
    Transactional,
    /// Before the pod is restored, in parallel with the transfer, as in the paper. If the restore fails, the pod
    /// is lost.
    DeleteFirst,
}

/// How a checkpoint is compressed on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Compression {
    /// With zstd.
    #[default]
    Zstd,
    /// Not at all.
    None,
}

/// Bounds of a migration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[LIMIT_RULES])))]
pub struct MigrationLimits {
    /// How long the migration may take from beginning to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// How long the pod may stand still. It must not be longer than timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_downtime: Option<Duration>,
    /// How many bytes all checkpoints may have together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "quantity_schema")]
    pub max_checkpoint_size: Option<Quantity>,
    /// How many bytes may be sent in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "quantity_schema")]
    pub max_bandwidth: Option<Quantity>,
}

const LIMIT_RULES: &[Rule] = &[rule(
    "!has(self.timeout) || !has(self.maxDowntime) || duration(self.maxDowntime) <= duration(self.timeout)",
    "limits.maxDowntime must not be longer than limits.timeout",
)];

/// How far the migration is, and how long each part took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveMigrationStatus {
    /// The generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What was found out: Ready, Progressing, Complete, Failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// How far the migration is.
    #[serde(default)]
    pub phase: MigrationPhase,
    /// The pod at the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<MigrationEnd>,
    /// The pod at the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<MigrationEnd>,
    /// The state of each container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub containers: Vec<ContainerMigration>,
    /// The phases that were entered, in order, with their times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub phases: Vec<PhaseTime>,
    /// When the migration began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the migration ended, well or badly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// How long the pod stood still: from the freeze at the source until it ran at the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downtime: Option<Duration>,
    /// How long the whole migration took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_duration: Option<Duration>,
    /// How many bytes were sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transferred_bytes: Option<i64>,
    /// The number of the attempt that may act. An agent with an older number stops.
    #[serde(default)]
    pub fencing_token: i64,
}

/// How far a migration is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum MigrationPhase {
    /// It waits to be started.
    #[default]
    Pending,
    /// It is checked that both clusters can do it.
    Preflight,
    /// The way to the destination is being opened.
    Peering,
    /// The containers are being frozen and written down.
    Checkpointing,
    /// The checkpoints are on their way.
    Transferring,
    /// The pod at the source is being deleted before the restore (order DeleteFirst).
    Deleting,
    /// The pod is being restored at the destination.
    Restoring,
    /// It is checked that the restored pod runs.
    Verifying,
    /// The restored pod is the pod from now on; what is left at the source is removed.
    Committing,
    /// The pod runs at the destination.
    Succeeded,
    /// Something failed; the pod is being set going again at the source.
    RollingBack,
    /// It failed; the conditions say where the pod is.
    Failed,
    /// It was aborted; the pod goes on at the source.
    Aborted,
}

/// One end of a migration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationEnd {
    /// The name of the cluster.
    pub cluster: String,
    /// The namespace of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_name: Option<String>,
    /// The UID of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
    /// The node of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// One container on its way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerMigration {
    /// The name of the container.
    pub name: String,
    /// How many bytes its checkpoint has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_bytes: Option<i64>,
    /// How many of them have arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transferred_bytes: Option<i64>,
    /// The SHA-256 sum of the checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// Whether it runs at the destination.
    #[serde(default)]
    pub restored: bool,
    /// A sentence that says what went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// When a phase was entered and how long it took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PhaseTime {
    /// The phase.
    pub phase: MigrationPhase,
    /// When it was entered.
    pub started_at: MicroTime,
    /// How long it took, once it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
}

kind!(
    LiveMigration,
    LiveMigrationSpec,
    LiveMigrationStatus,
    "A LiveMigration moves one running pod to another cluster with the memory of all its containers: it is frozen and \
     written down, sent directly to the destination, and goes on there where it stood still."
);
