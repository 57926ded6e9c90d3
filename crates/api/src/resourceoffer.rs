//! ResourceOffer: what a cluster shares with another one.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    conditions::conditions_schema,
    placement::Resources,
    quantity::quantities_schema,
    schema::{Rule, kind, rule},
};

/// The only name that a ResourceOffer may have: there is one in the namespace of a tenant.
pub const OFFER_NAME: &str = "offer";

/// What a provider shares with a consumer.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "portolan.dev",
    version = "v1alpha1",
    kind = "ResourceOffer",
    plural = "resourceoffers",
    shortname = "offer",
    shortname = "offers",
    category = "portolan",
    namespaced,
    schema = "manual",
    status = "ResourceOfferStatus",
    derive = "PartialEq",
    printcolumn(name = "Consumer", type_ = "string", json_path = ".spec.consumer"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Accepted",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Accepted")].status"#
    ),
    printcolumn(name = "CPU", type_ = "string", json_path = ".status.summary.cpu"),
    printcolumn(name = "Memory", type_ = "string", json_path = ".status.summary.memory"),
    printcolumn(name = "Pods", type_ = "string", json_path = ".status.summary.pods"),
    printcolumn(name = "Expires", type_ = "string", json_path = ".spec.expiresAt", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ResourceOfferSpec {
    /// The name that the consumer has in the provider: that of its ForeignCluster.
    #[schemars(length(min = 1, max = 63))]
    pub consumer: String,

    /// How much is offered in all, by resource, what the consumer uses already included. The quotas in the namespaces of
    /// the tenant never admit more together.
    #[schemars(schema_with = "quantities_schema")]
    pub resources: Resources,

    /// The storage classes that the consumer may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub storage_classes: Vec<OfferedStorageClass>,

    /// Labels that tell where the provider is and what it is like.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub labels: BTreeMap<String, String>,

    /// Until when the offer holds. The provider renews it long before; after that time a consumer places nothing new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

const ROOT_RULES: &[Rule] = &[rule(
    "self.metadata.name == 'offer'",
    "a ResourceOffer must have the name offer: there is one in the namespace of a tenant",
)];

/// A storage class of the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedStorageClass {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Whether volumes get it that name none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,
}

/// How an offer is enforced and used. The provider writes all of it but the condition Accepted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceOfferStatus {
    /// The generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What was found out: Ready, which the provider writes, and Accepted, which the consumer writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// What the pods of the tenant request together, by resource.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub used: Resources,
    /// The namespaces of the tenant, and what the quota of each admits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub namespaces: Vec<NamespaceQuota>,
    /// The numbers above as short texts, for tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<OfferSummary>,
}

/// The part of an offer that one namespace may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceQuota {
    /// The name of the namespace.
    pub name: String,
    /// What its quota admits, by resource.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub hard: Resources,
    /// What its pods request, by resource.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub used: Resources,
}

/// The numbers of an offer as short texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferSummary {
    /// CPUs that pods of the tenant request out of those offered, such as 3.5/8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Memory that pods of the tenant request out of that offered, such as 2Gi/16Gi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Pods of the tenant out of those offered, such as 3/55.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<String>,
}

kind!(
    ResourceOffer,
    ResourceOfferSpec,
    ResourceOfferStatus,
    "A ResourceOffer is what this cluster shares with another one. It is written by Portolan into the namespace of the tenant, \
     follows what is really free, and is enforced by ResourceQuotas in all namespaces of the tenant.",
    ROOT_RULES
);
