//! What users are told of.

use super::{Ending, Failure};
use portolan_api::Money;
use std::collections::BTreeSet;
use std::fmt;

/// Something that has happened, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A cluster was asked for.
    ClusterRequested {
        /// Its name in Cluster API.
        name: String,
        /// With how many nodes.
        nodes: u32,
        /// What they cost per hour, in millionths.
        cost: u64,
    },
    /// The cluster has joined the fleet.
    ClusterJoined {
        /// So many seconds after it was asked for.
        seconds: u64,
    },
    /// The cluster could not be made.
    ClusterFailed(Failure),
    /// Nodes could not be made.
    NodesFailed {
        /// Their machine type.
        machine_type: String,
        /// Why.
        failure: Failure,
    },
    /// More nodes were asked for.
    ScaledOut {
        /// Their machine type.
        machine_type: String,
        /// How many more.
        nodes: u32,
    },
    /// Nodes that are little used are being removed.
    ScaledIn {
        /// Their machines.
        machines: BTreeSet<String>,
    },
    /// Nodes that were to be removed are needed again.
    ScaleInCalledOff,
    /// The cluster is being removed.
    Deprovisioning(Ending),
    /// The cluster that was to be removed is needed again.
    DeprovisioningCalledOff,
    /// The cluster is gone.
    ClusterDeleted {
        /// What it has cost.
        cost: Money,
    },
}

impl Event {
    /// The reason in a word.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::ClusterRequested { .. } => "ClusterRequested",
            Self::ClusterJoined { .. } => "ClusterJoined",
            Self::ClusterFailed(_) => "ProvisionFailed",
            Self::NodesFailed { .. } => "NodesFailed",
            Self::ScaledOut { .. } => "ScaledOut",
            Self::ScaledIn { .. } => "ScaledIn",
            Self::ScaleInCalledOff => "ScaleInCalledOff",
            Self::Deprovisioning(_) => "Deprovisioning",
            Self::DeprovisioningCalledOff => "DeprovisioningCalledOff",
            Self::ClusterDeleted { .. } => "ClusterDeleted",
        }
    }

    /// Whether it is a warning.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::ClusterFailed(_) | Self::NodesFailed { .. })
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClusterRequested { name, nodes, cost } => {
                let cost = Money::from_micros(*cost);
                write!(f, "Cluster {name} was requested with {nodes} nodes, for {cost} per hour")
            }
            Self::ClusterJoined { seconds } => write!(f, "the cloud cluster joined after {seconds} s"),
            Self::ClusterFailed(Failure { reason, message }) => {
                write!(f, "the cloud cluster was not provisioned: {reason}: {message}")
            }
            Self::NodesFailed { machine_type, failure: Failure { reason, message } } => {
                write!(f, "nodes of machine type {machine_type} were not provisioned: {reason}: {message}")
            }
            Self::ScaledOut { machine_type, nodes } => {
                write!(f, "{nodes} more nodes of machine type {machine_type} were requested")
            }
            Self::ScaledIn { machines } => {
                let names: Vec<&str> = machines.iter().map(String::as_str).collect();
                write!(f, "little used nodes are removed, machines {}", names.join(", "))
            }
            Self::ScaleInCalledOff => f.write_str("nodes that were to be removed are needed again"),
            Self::Deprovisioning(ending) => {
                let why = match ending {
                    Ending::Unused => "no workload has needed it for spec.decommissionAfter",
                    Ending::Failed => "it was not provisioned",
                    Ending::ProvisionerDeleted => "its CloudProvisioner is being deleted",
                    Ending::Unpeered => "its ForeignCluster was deleted",
                    Ending::DeletedElsewhere => "its Cluster was deleted in Cluster API",
                };
                write!(f, "the cloud cluster is removed: {why}")
            }
            Self::DeprovisioningCalledOff => f.write_str("the cloud cluster is needed again and stays"),
            Self::ClusterDeleted { cost } => write!(f, "the cloud cluster is gone; it has cost {cost}"),
        }
    }
}
