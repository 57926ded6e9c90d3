//! Stopping and starting parts of a running cluster.

use anyhow::{Result, ensure};

use super::Cluster;
use crate::component::Component;
use crate::node::{Node, boot};

impl Cluster {
    /// Asks a component to end, and ends it after a few seconds if it has not: on the node of the control plane, or on
    /// every node if it is one that runs everywhere.
    pub async fn stop(&self, component: Component) -> Result<()> {
        for node in self.nodes_of(component)? {
            node.stop(component).await?;
        }
        Ok(())
    }

    /// Ends a component without letting it do anything more, as a crash does.
    pub async fn kill(&self, component: Component) -> Result<()> {
        for node in self.nodes_of(component)? {
            node.kill(component).await?;
        }
        Ok(())
    }

    /// Starts a component that was stopped or killed and waits until it answers.
    pub async fn start(&self, component: Component) -> Result<()> {
        for node in self.nodes_of(component)? {
            self.start_on(node.name(), component).await?;
        }
        Ok(())
    }

    /// Stops and starts a component.
    pub async fn restart(&self, component: Component) -> Result<()> {
        self.stop(component).await?;
        self.start(component).await
    }

    /// [`stop`](Self::stop) on one node alone.
    pub async fn stop_on(&self, node: &str, component: Component) -> Result<()> {
        self.node(node)?.stop(component).await
    }

    /// [`kill`](Self::kill) on one node alone.
    pub async fn kill_on(&self, node: &str, component: Component) -> Result<()> {
        self.node(node)?.kill(component).await
    }

    /// [`start`](Self::start) on one node alone.
    pub async fn start_on(&self, node: &str, component: Component) -> Result<()> {
        let node = self.node(node)?;
        self.spawn(component, node).await?;
        self.wait_until_up(component, node).await
    }

    /// Takes the power from a node: everything on it ends at once, and its disk stays.
    pub async fn power_off(&self, node: &str) -> Result<()> {
        self.node(node)?.power_off().await
    }

    /// Gives a node its power back and starts all components on it.
    pub async fn power_on(&self, node: &str) -> Result<()> {
        let node = self.node(node)?;
        ensure!(!node.is_running(), "node {} already runs", node.name());
        boot(&self.lab, &self.state, node).await?;
        for component in self.components_of(node) {
            self.start_on(node.name(), component).await?;
        }
        Ok(())
    }

    fn components_of(&self, node: &Node) -> Vec<Component> {
        let is_first = node.name() == self.control_plane().name();
        let runs = |component: &Component| match component {
            Component::Kwok => is_first && self.state.kwok > 0,
            other if other.is_control_plane() => is_first,
            _ => self.workers().iter().any(|worker| worker.name() == node.name()),
        };
        Component::ALL.into_iter().filter(runs).collect()
    }

    fn nodes_of(&self, component: Component) -> Result<&[Node]> {
        ensure!(
            component != Component::Kwok || self.state.kwok > 0,
            "cluster {} has no kwok: it was made without simulated nodes",
            self.name()
        );
        ensure!(
            component.is_control_plane() || !self.state.only_simulated,
            "cluster {} has no {component}: all its nodes are simulated",
            self.name()
        );
        Ok(if component.is_control_plane() { &self.nodes[..1] } else { self.workers() })
    }
}
