//! What two clusters are to each other, beside members of a fleet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::{
    placement::Resources,
    quantity::quantities_schema,
    schema::{NO_NAMESPACE_OF_THE_SYSTEM, rules},
    sharing::Sharing,
};

/// What the other cluster is here: a consumer with a tenant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IncomingPeering {
    /// The only user that the other cluster is here, as its certificate says. A certificate of another user is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub user: Option<String>,
    /// The namespace of the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub tenant_namespace: Option<String>,
    /// The namespaces in which the other cluster may place workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    #[schemars(extend("x-kubernetes-list-type" = "set", "x-kubernetes-validations" = rules(&[NO_NAMESPACE_OF_THE_SYSTEM])))]
    pub namespaces: Vec<String>,
    /// Whether the other cluster sees nodes, and pods and workloads in all namespaces.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sees_cluster: bool,
    /// What this cluster shares with the other one. If it is not given, the default SharingClass holds; without one,
    /// nothing is offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
}

/// What this cluster is to the other one: its tenant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutgoingPeering {
    /// The namespace of this cluster in the other one. The offer of the other cluster is there, and placement uses no more
    /// of the cluster than was offered and accepted.
    #[schemars(length(min = 1, max = 63))]
    pub tenant_namespace: String,
    /// Whether this cluster places workloads in namespaces of the other one. Without that, the other cluster is no member
    /// that workloads are placed on.
    #[serde(default)]
    pub placement: bool,
    /// Whether this cluster sees nodes of the other one, and pods and workloads in all namespaces. Otherwise the room of the other
    /// cluster is what it offers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sees_cluster: bool,
    /// Who accepts the offer of the other cluster.
    #[serde(default)]
    pub acceptance: OfferAcceptance,
    /// What an offer must have at least to be accepted, by resource.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub minimum: Resources,
    /// The uid of the offer that was accepted by hand. `portolan accept-offer` sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub accepted_offer: Option<String>,
}

/// Who accepts an offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OfferAcceptance {
    /// Portolan, as soon as it has the minimum.
    #[default]
    Automatic,
    /// A user, by `portolan accept-offer`. An accepted offer stays accepted when its quantities change.
    Manual,
}

/// What the other cluster was given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IncomingStatus {
    /// What this cluster offers, by resource.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub offered: Resources,
    /// What the pods of the other cluster request here, by resource.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub used: Resources,
}

/// What the other cluster offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutgoingStatus {
    /// The uid of the offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<String>,
    /// What the other cluster offers, by resource.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub offered: Resources,
    /// What is used of it, by resource.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "quantities_schema")]
    pub used: Resources,
    /// The namespaces there whose pods use the offer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// The storage classes that may be used there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub storage_classes: Vec<String>,
    /// Until when the offer holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}
