//! Invitation: lets one other cluster peer with this one, once and for a while.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    conditions::conditions_schema,
    foreigncluster::ClusterIdentity,
    schema::{NO_NAMESPACE_OF_THE_SYSTEM, Rule, kind, rule, rules},
    sharing::Sharing,
};

/// What another cluster may become here by this invitation.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "portolan.dev",
    version = "v1alpha1",
    kind = "Invitation",
    plural = "invitations",
    shortname = "inv",
    category = "portolan",
    namespaced,
    schema = "manual",
    status = "InvitationStatus",
    derive = "PartialEq",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Consumer", type_ = "string", json_path = ".status.consumer.clusterName"),
    printcolumn(name = "Expires", type_ = "string", json_path = ".spec.expiresAt"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[RULES])))]
pub struct InvitationSpec {
    /// From this time on the invitation is not accepted any more.
    pub expires_at: Time,

    /// What the consumer is called here. Without it, the consumer is called what it calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 40), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub consumer: Option<String>,

    /// The namespaces in which the consumer may place workloads. Without any, the consumer has no rights but in its tenant
    /// namespace, and sees nothing else of the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    #[schemars(extend("x-kubernetes-list-type" = "set", "x-kubernetes-validations" = rules(&[NO_NAMESPACE_OF_THE_SYSTEM])))]
    pub namespaces: Vec<String>,

    /// Whether the consumer sees nodes, and pods and workloads in all namespaces. Otherwise it sees those namespaces only, and
    /// takes the room that is offered to it as that of one large node.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sees_cluster: bool,

    /// What this cluster shares with the consumer. If it is not given, the default SharingClass holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,

    /// Whether the first cluster that uses the invitation peers at once, or waits until accepted is true.
    #[serde(default)]
    pub acceptance: Acceptance,

    /// With acceptance Manual: the cluster that asks is accepted. `portolan accept` sets it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepted: bool,
}

const RULES: &[Rule] = &[rule(
    "self.expiresAt == oldSelf.expiresAt",
    "expiresAt is immutable: make a new invitation, and delete this one",
)];

/// When a cluster that uses an invitation peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Acceptance {
    /// As soon as it asks.
    #[default]
    Automatic,
    /// When somebody has set accepted.
    Manual,
}

/// How far an invitation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InvitationPhase {
    /// No cluster has used it yet.
    #[default]
    Pending,
    /// A cluster has used it, and waits for spec.accepted.
    AwaitingAcceptance,
    /// A cluster is accepted, and its tenant namespace and rights are being made.
    Accepted,
    /// The cluster can fetch its credential.
    Issued,
    /// The cluster has its credential. The invitation is of no use any more.
    Used,
    /// It was not used in time.
    Expired,
    /// What was asked for by it is refused. It is of no use any more.
    Refused,
}

impl InvitationPhase {
    /// Whether nothing comes of the invitation any more.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Used | Self::Expired | Self::Refused)
    }
}

/// What became of an invitation. No secret is kept here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvitationStatus {
    /// The generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How far it is.
    #[serde(default)]
    pub phase: InvitationPhase,
    /// A sentence for people: what is waited for, or why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What was found out: Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// The cluster that has used it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<ClusterIdentity>,
    /// A digest of the public key that the cluster showed first. Another key is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_digest: Option<String>,
    /// The user that the consumer is here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The ForeignCluster that stands for the consumer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_cluster: Option<String>,
    /// The namespace of the consumer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_namespace: Option<String>,
    /// When it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<Time>,
}

kind!(
    Invitation,
    InvitationSpec,
    InvitationStatus,
    "An Invitation lets one other cluster peer with this one: once, until it expires. `portolan invite` creates it and \
     prints the line that the other cluster gives to `portolan peer`. It lies in namespace portolan and holds no secret."
);
