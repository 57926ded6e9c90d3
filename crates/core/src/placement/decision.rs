//! What a decision says.

use super::Refusal;
use portolan_api::placement::{PlacementCause, PlacementPolicy};
use std::collections::BTreeMap;

/// The replicas of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// How many.
    pub replicas: u32,
    /// Why this cluster.
    pub cause: PlacementCause,
    /// The locations that it stands in for.
    pub stands_in_for: Vec<String>,
    /// Those among them that only stay, since they find no place as the present spec asks for them.
    pub kept: Option<Kept>,
}

impl Placed {
    /// No replicas yet, for this reason.
    #[must_use]
    pub fn new(cause: PlacementCause) -> Self {
        Self { replicas: 0, cause, stands_in_for: Vec::new(), kept: None }
    }

    /// How many of its replicas only stay.
    #[must_use]
    pub fn staying(&self) -> u32 {
        self.kept.map_or(0, |kept| kept.replicas)
    }
}

/// What was decided. Placed and pending replicas together are the replicas of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The clusters that hold replicas.
    pub placed: BTreeMap<String, Placed>,
    /// How many replicas have no cluster.
    pub pending: u32,
    /// How many of the placed replicas only stay where they run, since they find no place as the present spec asks for them.
    pub staying: u32,
    /// For replicas that are pending or only stay: why each cluster took none, or no more.
    pub refusals: BTreeMap<String, Refusal>,
    /// Whether a further cluster in the cloud would help: replicas that may leave their locations fit nowhere.
    pub to_cloud: bool,
    /// What the policy lacks, if clusters were put in order by another one.
    pub fallback: Option<&'static str>,
}

/// Why nothing could be decided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecided {
    /// The policy needs something that is not there.
    #[error("placement policy {policy} is not available: {missing}")]
    PolicyUnavailable {
        /// The policy asked for.
        policy: PlacementPolicy,
        /// What is missing.
        missing: &'static str,
    },
}

/// Why replicas stay in a cluster that would not get them today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptBecause {
    /// The cluster is to be left, and no other one takes them.
    Evicted,
    /// The workload does not ask for the cluster any more, and those it asks for do not take them.
    NotWanted,
    /// The cluster has no room for them as the present spec asks for them, and no other one takes them.
    NoRoom,
    /// The cluster refuses the workload as the present spec asks for it.
    Refused,
}

/// Replicas that only stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// How many of those placed in the cluster.
    pub replicas: u32,
    /// Why.
    pub because: KeptBecause,
    /// Whether the cluster has no room for all its replicas by the present template: then a copy of a former one is
    /// left as it is, since updating it would end replicas that cannot be started again.
    pub as_they_are: bool,
}
