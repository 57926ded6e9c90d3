//! PlacementReview: asks the controller where a workload is and why, or where manifests would go.

mod status;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use status::{
    ClusterReview, ContainerChange, EndpointCounts, FreeRoom, JobCounts, ObjectReview, PlacementReviewStatus,
    ReservedRoom, ReviewDistance, ReviewError, ReviewFilter, ReviewRefusal, ReviewResult, Rollout,
};

use crate::{
    schema::{Rule, kind, rule, rules},
    template::PreservedObject,
};

/// The most manifests that one review takes.
pub const MAX_MANIFESTS: usize = 20;

/// A question about placement, which the controller answers in the status.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "portolan.dev",
    version = "v1alpha1",
    kind = "PlacementReview",
    plural = "placementreviews",
    shortname = "plr",
    category = "portolan",
    namespaced,
    schema = "manual",
    status = "PlacementReviewStatus",
    derive = "PartialEq",
    printcolumn(name = "Result", type_ = "string", json_path = ".status.result"),
    printcolumn(name = "Objects", type_ = "string", json_path = ".status.objects[*].name"),
    printcolumn(name = "Answered", type_ = "date", json_path = ".status.observedTime"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[RULES])))]
pub struct PlacementReviewSpec {
    /// An object of this namespace whose placement is explained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explain: Option<ReviewTarget>,

    /// Whole manifests of this namespace: MultiClusterDeployments, MultiClusterJobs and MultiClusterServices. The answer
    /// says what each cluster would have after `kubectl apply` of all of them. Nothing is applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub plan: Vec<PreservedObject>,
}

/// An object of the review's own namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewTarget {
    /// The kind of the object.
    pub kind: ReviewedKind,
    /// The name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// A kind that can be reviewed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum ReviewedKind {
    #[default]
    MultiClusterDeployment,
    MultiClusterJob,
    MultiClusterService,
}

impl ReviewedKind {
    /// All of them.
    pub const ALL: [Self; 3] =
        [Self::MultiClusterDeployment, Self::MultiClusterJob, Self::MultiClusterService];

    /// The kind as manifests write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MultiClusterDeployment => "MultiClusterDeployment",
            Self::MultiClusterJob => "MultiClusterJob",
            Self::MultiClusterService => "MultiClusterService",
        }
    }

    /// The kind of this name, if it can be reviewed.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

const RULES: &[Rule] = &[rule(
    "has(self.explain) != (has(self.plan) && size(self.plan) > 0)",
    "give either explain or plan, and at least one manifest to plan",
)];

kind!(
    PlacementReview,
    PlacementReviewSpec,
    PlacementReviewStatus,
    "A PlacementReview asks where a workload is placed and why, or where manifests would be placed. The controller answers \
     in the status and deletes the review some minutes later. `portolan plan` and `portolan explain` create and delete \
     such reviews. Nothing is placed or changed by a review."
);
