//! What Cluster API, the member and its nodes show at this moment.

use super::{Demand, Failure};
use crate::capacity::{Amounts, NodeFacts, Shape};
use crate::time::has_passed;
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// What is seen of one provisioner's work.
///
/// It is taken when the lists of Cluster API are complete, and the cluster on record was asked for by its name: what is
/// missing does not exist.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The pods that this provisioner is to make room for.
    pub demand: Demand,
    /// The clusters in Cluster API that carry this provisioner's uid, and the one on record whatever it carries, by name.
    pub clusters: BTreeMap<String, ClusterSnapshot>,
    /// The ForeignCluster that belongs to this provisioner.
    pub member: MemberState,
    /// Whether the ForeignCluster carries the taint that has workloads leave before it is deleted.
    pub leaving: bool,
    /// Another CloudProvisioner with the same `cloudClusterName`, which comes first.
    pub rival: Option<String>,
    /// Why this may be of the past, if it may: then nothing is made, removed or lowered.
    pub outdated: Option<String>,
    /// Why Cluster API refused the last request to create the cluster, if it did.
    pub refused: Option<Failure>,
}

/// A cluster in Cluster API.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterSnapshot {
    /// Which cluster of the provisioner it is, by its label.
    pub number: u32,
    /// Whether its control plane is available and its kubeconfig Secret exists.
    pub usable: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether parts that it refers to were not created yet: whoever created it stopped in between.
    pub incomplete: bool,
    /// Why nothing may be done about it, if nothing may.
    pub untouchable: Option<Untouchable>,
    /// How far it is, in the words of the condition that is not met yet.
    pub progress: Option<Failure>,
    /// What has failed, if something has.
    pub failure: Option<Failure>,
    /// Its MachineDeployments, by machine type.
    pub pools: BTreeMap<String, PoolSnapshot>,
}

/// Why nothing may be done about a cluster that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Untouchable {
    /// Its labels do not say any more that it is this provisioner's.
    NotOwned,
    /// It cannot be read, for this reason.
    Unreadable(String),
}

/// A MachineDeployment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PoolSnapshot {
    /// How many machines it is asked for.
    pub replicas: u32,
    /// Its machines, by name.
    pub machines: BTreeMap<String, MachineSnapshot>,
}

/// A Machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineSnapshot {
    /// Whether Cluster API has seen its node, so that it was made. It knows that also while the member is silent.
    pub registered: bool,
    /// When Cluster API began with it.
    pub created_at: Option<Timestamp>,
    /// Since when its node has been ready, if it is.
    pub ready_since: Option<Timestamp>,
    /// Since when Cluster API has known it not to be ready, if it is not.
    pub unready_since: Option<Timestamp>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether it carries Cluster API's annotation that has it deleted first, with Portolan's value.
    pub marked: bool,
    /// Why it cannot be made, in the words of its own conditions.
    pub failure: Option<Failure>,
    /// Its node, if the member answers and has it.
    pub node: Option<NodeSnapshot>,
}

/// A node of the cloud cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeSnapshot {
    /// What it offers.
    pub facts: NodeFacts,
    /// What is free beside its pods and what is reserved.
    pub free: Amounts,
    /// Its pods, without those of its own services.
    pub pods: Vec<PodSnapshot>,
}

/// A pod that would have to go if its node went.
#[derive(Clone, Debug, PartialEq)]
pub struct PodSnapshot {
    /// What it needs.
    pub shape: Shape,
    /// Why it cannot be evicted, if it cannot: a disruption budget, no controller, local data.
    pub stays: Option<String>,
}

/// The ForeignCluster of the cloud cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemberState {
    /// There is none.
    #[default]
    Absent,
    /// It exists and has not answered yet.
    Joining,
    /// It has answered.
    Joined {
        /// Whether it answers now, and its nodes and pods are known.
        reachable: bool,
        /// How many workloads have replicas, completions or reservations there.
        workloads: u32,
    },
    /// It is being deleted, and so many workloads are still there.
    Leaving {
        /// How many.
        workloads: u32,
    },
    /// There is one of that name that is not this provisioner's: it is of another cluster, or it has lost its label.
    Foreign {
        /// How many workloads are on record there.
        workloads: u32,
    },
    /// There is none, and workloads are on record in a cluster of that name.
    Missing {
        /// How many.
        workloads: u32,
    },
}

impl MachineSnapshot {
    /// Whether it will be an empty node soon. One that was a node and has not been ready for longer than a new one may take
    /// is not on its way, nor is one with pods.
    pub(super) fn is_coming(&self, patience: Duration, now: Timestamp) -> bool {
        self.ready_since.is_none()
            && !self.is_lost(patience, now)
            && self.node.as_ref().is_none_or(|node| node.pods.is_empty())
    }

    /// Whether it was a node and has not been ready for longer than a new one may take.
    pub(super) fn is_lost(&self, patience: Duration, now: Timestamp) -> bool {
        self.registered && self.ready_since.is_none() && has_passed(self.unready_since, patience, now)
    }

    /// Since when its node is waited for, if it has none: before the cluster had joined, it could not have one.
    pub(super) fn awaited_since(&self, joined_at: Timestamp) -> Option<Timestamp> {
        (!self.registered).then(|| self.created_at.map_or(joined_at, |at| at.max(joined_at)))
    }
}

impl PoolSnapshot {
    /// The machines that are not being deleted.
    pub(super) fn live(&self) -> impl Iterator<Item = (&String, &MachineSnapshot)> {
        self.machines.iter().filter(|(_, machine)| !machine.deleting)
    }

    /// How many machines are ready and stay.
    pub(super) fn ready(&self) -> u32 {
        count(self.live().filter(|(_, machine)| machine.ready_since.is_some()).count())
    }
}

pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
