//! MultiClusterHorizontalPodAutoscaler: an autoscaler over clusters, in the shape of the HorizontalPodAutoscaler v2.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    autoscaling::{Behavior, CurrentMetric, Metric, MinimumSchedule, Recommendation, ScaleEvent},
    conditions::conditions_schema,
    schema::{Rule, kind, rule, rules},
};

/// How a multi-cluster workload is scaled.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "portolan.dev",
    version = "v1alpha1",
    kind = "MultiClusterHorizontalPodAutoscaler",
    plural = "multiclusterhorizontalpodautoscalers",
    shortname = "mchpa",
    category = "portolan",
    namespaced,
    schema = "manual",
    status = "MultiClusterHorizontalPodAutoscalerStatus",
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
    printcolumn(name = "Target", type_ = "string", json_path = ".spec.scaleTargetRef.name"),
    printcolumn(name = "Metrics", type_ = "string", json_path = ".status.metricsSummary"),
    printcolumn(name = "MinPods", type_ = "integer", json_path = ".spec.minReplicas"),
    printcolumn(name = "MaxPods", type_ = "integer", json_path = ".spec.maxReplicas"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".status.currentReplicas"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[RULES])))]
pub struct MultiClusterHorizontalPodAutoscalerSpec {
    /// The workload that is scaled.
    pub scale_target_ref: ScaleTargetRef,

    /// The least value that the workload's replicas are set to. It is meant like that field: for each location or
    /// in total. It may be 0 if one of the metrics is of type Object or External: the others cannot tell that load has
    /// come back while no pod runs.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub min_replicas: i32,

    /// The largest value that the workload's replicas are set to.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_replicas: i32,

    /// What the number of replicas is computed from. The metric that asks for the most replicas decides. If there
    /// is none, it is a CPU utilization of 80 percent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "atomic"))]
    pub metrics: Vec<Metric>,

    /// How fast the number of replicas may change in each direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behavior: Option<Behavior>,

    /// Larger minimums for some time of the day, the week or the year.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub schedules: Vec<MinimumSchedule>,
}

const fn one() -> i32 {
    1
}

const RULES: &[Rule] = &[
    rule("self.minReplicas <= self.maxReplicas", "minReplicas must not be greater than maxReplicas"),
    rule(
        "self.minReplicas > 0 || (has(self.metrics) && self.metrics.exists(m, m.type in ['Object', 'External']))",
        "minReplicas 0 needs a metric of type Object or External: the others need a pod that runs",
    ),
    rule(
        "!has(self.schedules) || self.schedules.all(s, s.minReplicas <= self.maxReplicas)",
        "the minReplicas of a schedule must not be greater than maxReplicas",
    ),
];

/// A workload that has a scale.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[TARGET_RULES])))]
pub struct ScaleTargetRef {
    /// The API version of the workload: portolan.dev/v1alpha1.
    #[serde(default = "api_version")]
    #[schemars(length(max = 253))]
    pub api_version: String,
    /// The kind of the workload: MultiClusterDeployment.
    #[schemars(length(max = 63))]
    pub kind: String,
    /// The name of the workload.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

fn api_version() -> String {
    crate::API_VERSION.to_owned()
}

const TARGET_RULES: &[Rule] = &[rule(
    "self.apiVersion.startsWith('portolan.dev/') && self.kind == 'MultiClusterDeployment'",
    "scaleTargetRef must name a MultiClusterDeployment of portolan.dev/v1alpha1: nothing else can be scaled over \
     clusters",
)];

/// What the autoscaler found and did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MultiClusterHorizontalPodAutoscalerStatus {
    /// The generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What was found out: Ready, AbleToScale, ScalingActive, ScalingLimited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// When the number of replicas was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_scale_time: Option<Time>,
    /// The workload's replicas as the autoscaler last saw them.
    #[serde(default)]
    pub current_replicas: i32,
    /// The replicas that the autoscaler last asked for.
    #[serde(default)]
    pub desired_replicas: i32,
    /// The least number of replicas that holds now, by minReplicas and the schedules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// The metrics in short, such as cpu 63%/75%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics_summary: Option<String>,
    /// The metrics as last read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "atomic"))]
    pub current_metrics: Vec<CurrentMetric>,
    /// What each cluster contributed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["cluster"]))]
    pub clusters: Vec<ClusterScale>,
    /// What was recommended lately, for the stabilization windows: those that later ones do not make void.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 512), extend("x-kubernetes-list-type" = "atomic"))]
    pub recommendations: Vec<Recommendation>,
    /// How the number of replicas was changed lately, for the scaling policies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 512), extend("x-kubernetes-list-type" = "atomic"))]
    pub scale_events: Vec<ScaleEvent>,
}

/// What one cluster contributed to a decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterScale {
    /// The name of the cluster.
    pub cluster: String,
    /// How many replicas the cluster holds.
    #[serde(default)]
    pub current_replicas: i32,
    /// How many replicas the load of this cluster alone would need.
    #[serde(default)]
    pub desired_replicas: i32,
    /// The average utilization of its pods, in percent of their requests, by the first metric that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_utilization: Option<i32>,
    /// Why the cluster contributed nothing, if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When the cluster last reported these numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Time>,
    /// How many of the total the cluster is to run, with replicasMode Total: the total is divided in these proportions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<i32>,
    /// What this cluster was lately recommended to run, with replicasMode Total.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 512), extend("x-kubernetes-list-type" = "atomic"))]
    pub recommendations: Vec<Recommendation>,
}

kind!(
    MultiClusterHorizontalPodAutoscaler,
    MultiClusterHorizontalPodAutoscalerSpec,
    MultiClusterHorizontalPodAutoscalerStatus,
    "A MultiClusterHorizontalPodAutoscaler adjusts the replicas of a MultiClusterDeployment to the load of its pods in \
     all clusters. It is written like a HorizontalPodAutoscaler, and no autoscaler is needed in the clusters."
);
