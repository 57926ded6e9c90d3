//! What goes wrong in a scenario.

use super::NodeRef;
use portolan_api::duration::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that goes wrong, or right again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// When, from the beginning.
    pub at: Duration,
    /// What.
    pub event: Event,
}

/// What goes wrong, or right again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Event {
    /// The controllers are cut off from a member, which goes on by itself.
    CutOff {
        /// The member.
        cluster: String,
    },
    /// The controllers reach a member again.
    Heal {
        /// The member.
        cluster: String,
    },
    /// A member is lost: all its nodes fall silent with their pods, and the controllers are cut off from it.
    LoseCluster {
        /// The member.
        cluster: String,
    },
    /// A member that was lost is back, with its nodes.
    RestoreCluster {
        /// The member.
        cluster: String,
    },
    /// A node falls silent with its pods.
    LoseNode {
        /// The member.
        cluster: String,
        /// The number of the node, the first being 1, or its name.
        node: NodeRef,
    },
    /// A node that fell silent answers again.
    RestoreNode {
        /// The member.
        cluster: String,
        /// The number of the node, the first being 1, or its name.
        node: NodeRef,
    },
    /// A cloud makes no more clusters.
    RefuseClusters(Refusal),
    /// A cloud makes no more machines of a type.
    RefuseMachines {
        /// The name of the cloud. If it is not given, all clouds refuse.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cloud: Option<String>,
        /// The machine type.
        machine_type: String,
        /// One word in CamelCase, such as OutOfCapacity.
        reason: String,
        /// A sentence.
        message: String,
    },
    /// All clouds make clusters and machines again.
    CloudRecovers,
}

/// What a cloud says when it refuses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Refusal {
    /// The name of the cloud. If it is not given, all clouds refuse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud: Option<String>,
    /// One word in CamelCase, such as QuotaExceeded.
    pub reason: String,
    /// A sentence.
    pub message: String,
}
