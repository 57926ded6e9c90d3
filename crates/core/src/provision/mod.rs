//! Clusters and nodes made in the cloud when the fleet has no room, and removed when nobody needs them.
//!
//! [`demand()`] sums up what waits, [`assign`] divides it over the provisioners, and [`plan`] takes the record of one of
//! them and what Cluster API and the member show, and answers the next record and the [`Order`]s. The record is written
//! before any order is carried out, every order can be repeated, and the name of a cluster follows from the record: so a
//! crash anywhere makes no second cluster and forgets no machine. Nothing is removed that a workload is on, and nothing
//! because a member is silent.

mod begin;
mod bins;
mod cost;
mod demand;
mod event;
mod follow;
mod limits;
mod machine;
mod machines;
mod meter;
#[cfg(test)]
mod model;
mod names;
mod obstacle;
mod order;
mod orphans;
mod own;
mod plan;
mod pools;
mod record;
mod remove;
mod retry;
mod scale;
mod settings;
mod shrink;
mod silence;
mod size;
mod snapshot;
mod status;
mod step;
#[cfg(test)]
mod test_support;
mod unhelped;

pub use bins::{Bin, fill};
pub use demand::{Demand, Waiting, demand};
pub use event::Event;
pub use machine::MachineType;
pub use machines::{EXACT_PODS, EXACT_WORK, Left, LeftBecause, Limits, Machines, choose};
pub use meter::{BURSTS, BurstCost, Meter};
pub use names::{Claim, rivals};
pub use obstacle::Obstacle;
pub use order::{Assignment, Offer, assign, preference};
pub use orphans::{LabelledCluster, orphans};
pub use plan::plan;
pub use record::{ClusterRecord, Ending, Failure, Pool, Record, Unhelped, cluster_name};
pub use retry::FAILURE_GRACE;
pub use settings::Settings;
pub use snapshot::{
    ClusterSnapshot, MachineSnapshot, MemberState, NodeSnapshot, PodSnapshot, PoolSnapshot, Snapshot,
    Untouchable,
};

use k8s_openapi::jiff::Timestamp;
use portolan_api::cloudprovisioner::CloudPhase;
use std::collections::{BTreeMap, BTreeSet};

/// What is to be done, in this order. Each can be repeated: what is done already is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Create the cluster in Cluster API, if there is none of that name.
    CreateCluster {
        /// Its name.
        name: String,
        /// Which cluster of the provisioner it is, for its label.
        number: u32,
        /// How many nodes of each machine type.
        pools: BTreeMap<String, u32>,
    },
    /// Create the parts of a cluster that it refers to and that were not created with it.
    CompleteCluster {
        /// The cluster.
        name: String,
    },
    /// Ask for so many nodes of a machine type; a MachineDeployment that does not exist is added.
    SetReplicas {
        /// The cluster.
        cluster: String,
        /// The machine type.
        machine_type: String,
        /// How many.
        replicas: u32,
    },
    /// Set Cluster API's annotation that has these machines deleted before others.
    MarkForDeletion {
        /// The cluster.
        cluster: String,
        /// The machines.
        machines: BTreeSet<String>,
    },
    /// Remove that annotation: the machines stay.
    Unmark {
        /// The cluster.
        cluster: String,
        /// The machines.
        machines: BTreeSet<String>,
    },
    /// Create the ForeignCluster, with a credential of least privilege that is granted with the cluster's kubeconfig.
    Peer {
        /// The cluster in Cluster API.
        cluster: String,
        /// The name of the ForeignCluster.
        member: String,
    },
    /// Delete the ForeignCluster: workloads are moved away first, and it stays until none is there.
    Unpeer {
        /// The name of the ForeignCluster.
        member: String,
        /// Whether it goes whatever is on record there: its machines do not exist any more.
        abandon: bool,
    },
    /// Remove the taint of the ForeignCluster that has workloads leave: it was to be deleted, and stays.
    KeepPeered {
        /// The name of the ForeignCluster.
        member: String,
    },
    /// Delete the cluster in Cluster API.
    DeleteCluster {
        /// Its name.
        name: String,
    },
}

/// The next record, and what is to be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What is to be on record before any order is carried out.
    pub record: Record,
    /// What is to be done then.
    pub orders: Vec<Order>,
    /// What users are told.
    pub events: Vec<Event>,
    /// How far the cluster is.
    pub phase: CloudPhase,
    /// The pods that get no node here, and why.
    pub left: Vec<Left>,
    /// What keeps the provisioner from going on until somebody decides.
    pub obstacle: Option<Obstacle>,
    /// The machines whose nodes have not been ready for longer than a new one may take. They are left alone: pods may run there.
    pub lost: BTreeSet<String>,
    /// Clusters that carry the provisioner's uid and are not the one on record. They are left alone.
    pub strays: Vec<String>,
    /// When to look again if nothing changes before.
    pub next: Option<Timestamp>,
    /// Whether nothing of the provisioner is left, so that its finalizer can be removed.
    pub done: bool,
}
