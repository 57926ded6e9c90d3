//! MultiClusterDeployment: one Deployment, placed over many clusters.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    conditions::conditions_schema,
    placement::{
        ClusterWeight, DistancePolicy, DriftPolicy, PLACEMENT_RULES, PendingPlacement, Placement,
        PlacementStatus, ReplicasMode, Reservation, Resources, one,
    },
    quantity::quantities_schema,
    schema::{Rule, kind, rule, rules},
    selector::label_selector_schema,
    template::{PodTemplate, PreservedObject},
};

/// A set of Deployments of the same name on one or more clusters.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "portolan.dev",
    version = "v1alpha1",
    kind = "MultiClusterDeployment",
    plural = "multiclusterdeployments",
    shortname = "mcd",
    category = "portolan",
    namespaced,
    schema = "manual",
    status = "MultiClusterDeploymentStatus",
    derive = "PartialEq",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.scaleReplicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.readySummary"),
    printcolumn(name = "Up-to-date", type_ = "integer", json_path = ".status.updatedReplicas"),
    printcolumn(name = "Available", type_ = "integer", json_path = ".status.availableReplicas"),
    printcolumn(name = "Pending", type_ = "integer", json_path = ".status.pendingReplicas"),
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
pub struct MultiClusterDeploymentSpec {
    /// How clusters are chosen.
    #[serde(flatten)]
    pub placement: Placement,

    /// What happens when a copy in a member no longer is as it was placed there.
    #[serde(default)]
    pub drift_policy: DriftPolicy,

    /// Whether replicas that do not fit in the chosen clusters go to further ones, and at last to the cloud. Where it is
    /// taken away again, replicas that find no other place stay where they are until they do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enable_bursting: bool,

    /// To which cluster replicas burst first. It needs enableBursting. If it is not given, it is nearest-first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursting_policy: Option<DistancePolicy>,

    /// Which pods belong to the deployment. It must match the labels of the template and cannot be changed.
    #[schemars(schema_with = "label_selector_schema")]
    pub selector: LabelSelector,

    /// How many replicas are wanted: in every location, or in total, as replicasMode says.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub replicas: i32,

    /// Whether replicas counts for each location or for all of them together.
    #[serde(default)]
    pub replicas_mode: ReplicasMode,

    /// The shares of clusters when replicas are divided. They need replicasMode Total.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["cluster"]))]
    pub weights: Vec<ClusterWeight>,

    /// The pods that are run, as in a Deployment. ConfigMaps and Secrets that it refers to follow it to the
    /// clusters. All fields are kept as written; a dry run in a member checks them before anything is placed.
    pub template: PodTemplate,

    /// How pods are replaced by new ones in each cluster, as in a Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "strategy_schema")]
    pub strategy: Option<PreservedObject>,

    /// How many seconds a pod must be ready before it counts as available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,

    /// How many old ReplicaSets each cluster keeps for going back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub revision_history_limit: Option<i32>,

    /// After how many seconds without progress a cluster reports its rollout as failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub progress_deadline_seconds: Option<i32>,

    /// While it is true, nothing is placed, moved or rolled out. What runs goes on running.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// Declares the type alone, so that a mistyped one is told at once; the rest is preserved.
fn strategy_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "type": {
                "description": "Recreate ends all pods before new ones start. RollingUpdate, the default, replaces them \
                    bit by bit.",
                "type": "string",
                "enum": ["Recreate", "RollingUpdate"],
            },
        },
    })
}

const RULES: &[Rule] = &[
    rule(
        "!has(self.burstingPolicy) || (has(self.enableBursting) && self.enableBursting)",
        "burstingPolicy needs enableBursting: true",
    ),
    rule("self.selector == oldSelf.selector", "selector is immutable: make a new object instead"),
    rule(
        "(has(self.selector.matchLabels) && size(self.selector.matchLabels) > 0) \
         || (has(self.selector.matchExpressions) && size(self.selector.matchExpressions) > 0)",
        "selector must not be empty: it would select every pod",
    ),
    rule(
        "!has(self.selector.matchLabels) || (has(self.template.metadata) && has(self.template.metadata.labels) \
         && self.selector.matchLabels.all(k, k in self.template.metadata.labels \
         && self.template.metadata.labels[k] == self.selector.matchLabels[k]))",
        "selector.matchLabels must be among the labels of the template",
    ),
    rule(
        "!has(self.weights) || size(self.weights) == 0 || self.replicasMode == 'Total'",
        "weights need replicasMode: Total, since PerLocation gives every location the same number",
    ),
    rule(
        "!has(self.weights) || size(self.weights) == 0 || self.weights.exists(w, w.weight > 0)",
        "at least one of the weights must be greater than 0",
    ),
    rule(
        "!has(self.weights) || !has(self.locations) || size(self.locations) == 0 \
         || self.weights.all(w, w.cluster in self.locations)",
        "every weight must be of a cluster that is in locations",
    ),
];

/// What was placed, and its state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MultiClusterDeploymentStatus {
    /// The generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What was found out: Ready, Placed, Progressing, Available, ToCloud, Unreachable, Drifted, DependenciesReady.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// How many replicas are placed, summed over all clusters.
    #[serde(default)]
    pub replicas: i32,
    /// The number in the meaning of spec.replicas, which the scale subresource shows: the largest number of
    /// replicas in one location with PerLocation, the sum with Total.
    #[serde(default)]
    pub scale_replicas: i32,
    /// How many replicas are ready, summed over all clusters.
    #[serde(default)]
    pub ready_replicas: i32,
    /// How many replicas have the present template, summed over all clusters.
    #[serde(default)]
    pub updated_replicas: i32,
    /// How many replicas are available, summed over all clusters.
    #[serde(default)]
    pub available_replicas: i32,
    /// How many replicas that were asked for have no cluster.
    #[serde(default)]
    pub pending_replicas: i32,
    /// Ready replicas out of those asked for, such as 4/5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_summary: Option<String>,
    /// The names of the clusters that hold replicas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub locations: Vec<String>,
    /// The locations with their replicas, such as paris=2,rome=3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locations_summary: Option<String>,
    /// What each cluster holds. The replicas in it are the reservation of room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["cluster"]))]
    pub placements: Vec<PlacementStatus>,
    /// For replicas without a cluster: why each cluster did not take them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["cluster"]))]
    pub pending: Vec<PendingPlacement>,
    /// The selector as text, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// What one replica requests, by resource.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub resource_requests: Resources,
    /// The images of the template.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub images: Vec<String>,
    /// Who decided the placements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
}

kind!(
    MultiClusterDeployment,
    MultiClusterDeploymentSpec,
    MultiClusterDeploymentStatus,
    "A MultiClusterDeployment is a set of Deployments of the same name on one or more clusters. It is written like a \
     Deployment, with the clusters or the policy that chooses them added."
);
