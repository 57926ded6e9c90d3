//! What a cluster shares with others: rules, and classes of rules.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    conditions::conditions_schema,
    placement::Resources,
    quantity::{quantities_schema, shared_quantities_schema},
    schema::{Rule, kind, rule, rules},
};

/// What is shared with one cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[RULES])))]
pub struct Sharing {
    /// The name of the SharingClass that says what is shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub class_name: Option<String>,

    /// The share of what the nodes of this cluster have, in percent, of every resource that resources does not name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percentage: Option<i32>,

    /// Fixed quantities, such as cpu, memory, pods or nvidia.com/gpu. Without a percentage, CPU, memory and extended
    /// resources that are not named are not shared.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "shared_quantities_schema")]
    pub resources: Resources,
}

const RULES: &[Rule] = &[
    rule(
        "has(self.className) || has(self.percentage) || (has(self.resources) && size(self.resources) > 0)",
        "sharing needs className, percentage or resources",
    ),
    rule(
        "!has(self.className) || (!has(self.percentage) && !has(self.resources))",
        "sharing with className takes neither percentage nor resources: the SharingClass has them",
    ),
    NEEDS_CPU,
];

/// A quantity of pods that cannot run is no offer.
const NEEDS_CPU: Rule = rule(
    "has(self.percentage) || !has(self.resources) || size(self.resources) == 0 || ('cpu' in self.resources && 'memory' in \
     self.resources)",
    "resources without percentage needs cpu and memory: pods need both",
);

/// What is shared with the clusters of a class.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "portolan.dev",
    version = "v1alpha1",
    kind = "SharingClass",
    plural = "sharingclasses",
    shortname = "shc",
    category = "portolan",
    schema = "manual",
    status = "SharingClassStatus",
    derive = "PartialEq",
    printcolumn(name = "Default", type_ = "boolean", json_path = ".spec.default"),
    printcolumn(name = "Percentage", type_ = "integer", json_path = ".spec.percentage"),
    printcolumn(name = "CPU", type_ = "string", json_path = ".spec.resources.cpu"),
    printcolumn(name = "Memory", type_ = "string", json_path = ".spec.resources.memory"),
    printcolumn(name = "PodSecurity", type_ = "string", json_path = ".spec.podSecurity", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[CLASS_RULES])))]
pub struct SharingClassSpec {
    /// Whether the class holds for clusters that have no sharing of their own. If it is true in several classes, the one
    /// that was created last holds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,

    /// The share of what the nodes of this cluster have, in percent, of every resource that resources does not name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percentage: Option<i32>,

    /// Fixed quantities, such as cpu, memory, pods or nvidia.com/gpu. Without a percentage, CPU, memory and extended
    /// resources that are not named are not shared.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "shared_quantities_schema")]
    pub resources: Resources,

    /// The storage classes that are offered. If none is given, all of the cluster are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub storage_classes: Vec<String>,

    /// The labels that the offer carries. They tell a consumer where this cluster is and what it is like.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub labels: BTreeMap<String, String>,

    /// What a container requests that does not say so itself.
    #[serde(default = "default_requests", skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "shared_quantities_schema")]
    pub default_requests: Resources,

    /// The limits of a container that has none itself. A container that requests more than such a limit needs one of its own.
    #[serde(default = "default_limits", skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub default_limits: Resources,

    /// What a ResourceQuota bounds in each namespace of a tenant beside the offer, in its words, such as count/configmaps,
    /// requests.storage, services.loadbalancers or limits.memory. What is not named is bounded as by default.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub quota: Resources,

    /// The priority classes that pods of a tenant may have. If none is given, they may have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub priority_classes: Vec<String>,

    /// What pods may do in the namespaces of a tenant that say nothing about it themselves.
    #[serde(default)]
    pub pod_security: PodSecurity,
}

const CLASS_RULES: &[Rule] = &[
    rule(
        "has(self.percentage) || (has(self.resources) && size(self.resources) > 0)",
        "a SharingClass needs percentage or resources",
    ),
    NEEDS_CPU,
];

/// What a container requests that does not say so itself, where no class says otherwise.
#[must_use]
pub fn default_requests() -> Resources {
    let quantity = |text: &str| k8s_openapi::apimachinery::pkg::api::resource::Quantity(text.to_owned());
    [("cpu".to_owned(), quantity("100m")), ("memory".to_owned(), quantity("128Mi"))].into()
}

/// The limits of a container that has none itself, where no class says otherwise.
#[must_use]
pub fn default_limits() -> Resources {
    let quantity = k8s_openapi::apimachinery::pkg::api::resource::Quantity("10Gi".to_owned());
    [("ephemeral-storage".to_owned(), quantity)].into()
}

/// A level of the Pod Security Standards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PodSecurity {
    /// Nothing of the host is accessible.
    #[default]
    Baseline,
    /// Pods run without any privilege, as their own user.
    Restricted,
}

impl PodSecurity {
    /// The name as it stands in labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

/// How a class is used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SharingClassStatus {
    /// The generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What was found out: Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}

kind!(
    SharingClass,
    SharingClassSpec,
    SharingClassStatus,
    "A SharingClass says what this cluster shares with the clusters that name it, or with all that name none."
);
