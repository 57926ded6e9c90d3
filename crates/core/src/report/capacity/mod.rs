//! The capacity of a cluster in a few kilobytes, in place of its nodes and pods.
//!
//! The member [`summarise`]s what its [`crate::capacity::ClusterIndex`] follows: nodes are grouped by the labels that are told and
//! by taints, and within a group by what is free on them, of which the least counts. So whatever is placed by the summary fits on
//! the nodes that it was made of. The hub [`read`]s it back into groups that an index of its own takes for nodes.

mod read;
mod rooms;
mod summarise;
#[cfg(test)]
mod tests;

pub use read::{NotASummary, read};
pub use summarise::{is_news, summarise};

/// The labels of nodes that are always told.
const ALWAYS_TOLD: [&str; 5] = [
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// How many bytes a summary has at most, as JSON.
const BYTES_AT_MOST: usize = 16 * 1024;

/// How many taints the nodes of a group have at most.
const TAINTS_AT_MOST: usize = 16;

/// Of so many resources it is told what is free: CPU, memory, pods, and those others that most nodes offer.
const RESOURCES_AT_MOST: usize = 8;
