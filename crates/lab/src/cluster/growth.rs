//! Nodes that come to a running cluster and leave it, and the end of a cluster.

use std::fs;
use std::io::ErrorKind;

use anyhow::{Context, Result};

use super::{Cluster, bring_up};

impl Cluster {
    /// Starts a node that is written down and does not run yet, waits until it is Ready, and tells the others where its pods
    /// are. Not for several nodes at the same time: none of them would know of the others.
    pub(crate) async fn start_node(&self, name: &str) -> Result<()> {
        let node = self.node(name)?;
        bring_up::start_node(self, node)
            .await
            .with_context(|| format!("cannot start node {name} of cluster {}", self.name()))?;
        let route = format!("route replace {} via {}\n", node.state().pods, node.address());
        self.tell_others(name, &route).await
    }

    /// Ends a node and removes all of it. Its object in the API stays.
    pub(crate) async fn remove_node(&self, name: &str) -> Result<()> {
        let node = self.node(name)?;
        node.remove().await?;
        self.tell_others(name, &format!("route flush {}\n", node.state().pods)).await
    }

    /// Ends all nodes and removes everything of the cluster.
    pub(crate) async fn remove(&self) -> Result<()> {
        for node in &self.nodes {
            node.remove().await?;
        }
        match fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", self.dir.display()))
            }
            _ => Ok(()),
        }
    }

    /// Has `ip` do something on all other nodes.
    async fn tell_others(&self, name: &str, batch: &str) -> Result<()> {
        for other in self.nodes.iter().filter(|other| other.name() != name && other.is_running()) {
            other.exec_with_input(&["ip", "-batch", "-"], batch).await?;
        }
        Ok(())
    }
}
