//! What the script runs on.

use anyhow::Result;
use futures::future::LocalBoxFuture;
use kube::Client;
use std::time::Duration;

/// Breaks (true) or mends (false) the connection of the second node to its cluster.
pub type NodeSwitch = Box<dyn Fn(bool) -> LocalBoxFuture<'static, Result<()>>>;

/// A cluster of two nodes.
pub struct Ground {
    /// With all rights.
    pub client: Client,
    /// The names of the nodes.
    pub nodes: [String; 2],
    /// Makes the second node fall silent, or speak again.
    pub silence: NodeSwitch,
    /// How long nothing may happen before the cluster counts as being at rest.
    pub quiet: Duration,
    /// How long a step may take.
    pub limit: Duration,
}
