//! How a cluster may grow.

use super::NodeFacts;

/// Which room a cluster could have beside that of the nodes it has.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Growth {
    /// None: the nodes that it has are all that counts.
    #[default]
    Fixed,
    /// Its own autoscaler adds nodes when pods wait for one.
    UpTo {
        /// How many nodes it has at most.
        nodes: u32,
        /// What a new node looks like; like most of those it has, if that is not known.
        like: Option<Box<NodeFacts>>,
    },
    /// Its room is not counted: whoever runs the cluster sees to it that pods find a node.
    Uncounted,
}
