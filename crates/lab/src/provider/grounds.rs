//! The clusters and nodes that the provider has made in the lab.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};

use crate::builder::{plan_control_plane, plan_worker};
use crate::cluster::Cluster;
use crate::host;
use crate::report::Timings;
use crate::state::{ClusterState, LabState, MachineSize, MachineState};

/// The first node of a cluster is its control plane.
const FIRST_WORKER: u32 = 2;

/// The provider's part of a lab. Whatever is made is written down before, so that `lab list` knows of it.
pub(super) struct Grounds {
    lab: LabState,
    /// Clusters by uid of their LabControlPlane.
    made: BTreeMap<String, Made>,
    next_cluster: u32,
    /// The same clusters, for others to see.
    shown: Arc<Mutex<Vec<Cluster>>>,
}

struct Made {
    number: u32,
    /// Numbers are not used twice: the neighbours of a node remember its address.
    next_node: u32,
    cluster: Cluster,
    /// Names of nodes by uid of their LabMachine.
    machines: BTreeMap<String, String>,
}

impl Grounds {
    pub(super) fn new(lab: &LabState, shown: Arc<Mutex<Vec<Cluster>>>) -> Self {
        let next_cluster = lab.clusters.len() as u32 + 1;
        Self { lab: lab.clone(), made: BTreeMap::new(), next_cluster, shown }
    }

    /// The cluster of a LabControlPlane, if it runs.
    pub(super) fn cluster(&self, control_plane: &str) -> Option<&Cluster> {
        self.made.get(control_plane).map(|made| &made.cluster)
    }

    /// The node of a LabMachine, if it runs: its name, and the name by which Cluster API knows it.
    pub(super) fn node(&self, machine: &str) -> Option<(&Cluster, &str)> {
        self.made.values().find_map(|made| Some((&made.cluster, made.machines.get(machine)?.as_str())))
    }

    /// Starts a control plane. One that does not come up is removed again.
    pub(super) async fn add_cluster(&mut self, control_plane: &str) -> Result<()> {
        let number = self.next_cluster;
        host::check_inotify(1, 0)?;
        let state = plan_control_plane(&self.lab, number)?;
        self.next_cluster += 1;
        self.lab.clusters.push(state.clone());
        self.lab.write()?;
        let cluster = Cluster::new(&self.lab, &state)?;
        if let Err(error) = cluster.bring_up(&Timings::default()).await {
            self.discard(&cluster).await.context("cannot remove a cluster that did not start")?;
            return Err(error);
        }
        let machines = BTreeMap::new();
        self.made
            .insert(control_plane.to_owned(), Made { number, next_node: FIRST_WORKER, cluster, machines });
        self.show();
        Ok(())
    }

    /// Removes a cluster and all its nodes.
    pub(super) async fn remove_cluster(&mut self, control_plane: &str) -> Result<()> {
        let Some(made) = self.made.get(control_plane) else { return Ok(()) };
        let cluster = made.cluster.clone();
        self.discard(&cluster).await?;
        self.made.remove(control_plane);
        self.show();
        Ok(())
    }

    /// Starts a node of this size for a LabMachine. One that does not come up is removed again.
    pub(super) async fn add_node(
        &mut self,
        control_plane: &str,
        machine: &str,
        size: MachineSize,
    ) -> Result<()> {
        host::check_inotify(0, 1)?;
        let made = self.made.get_mut(control_plane).context("the cluster has no control plane")?;
        let mut state = made.cluster.state().clone();
        let mut node = plan_worker(&self.lab, &state, made.number, made.next_node)?;
        made.next_node += 1;
        let name = node.name.clone();
        let provider_id = format!("lab://{}/{name}", self.lab.name);
        node.machine = Some(MachineState { provider_id, size });
        state.nodes.push(node);
        self.change(control_plane, state)?;
        let made = self.made.get_mut(control_plane).context("the cluster has no control plane")?;
        made.machines.insert(machine.to_owned(), name.clone());
        let cluster = made.cluster.clone();
        if let Err(error) = cluster.start_node(&name).await {
            self.remove_node(machine).await.context("cannot remove a node that did not start")?;
            return Err(error);
        }
        Ok(())
    }

    /// Removes the node of a LabMachine.
    pub(super) async fn remove_node(&mut self, machine: &str) -> Result<()> {
        let of_machine = self.made.iter().find(|(_, made)| made.machines.contains_key(machine));
        let Some((control_plane, made)) = of_machine else { return Ok(()) };
        let (control_plane, cluster) = (control_plane.clone(), made.cluster.clone());
        let name = made.machines.get(machine).cloned().unwrap_or_default();
        cluster.remove_node(&name).await?;
        let mut state = cluster.state().clone();
        state.nodes.retain(|node| node.name != name);
        self.change(&control_plane, state)?;
        if let Some(made) = self.made.get_mut(&control_plane) {
            made.machines.remove(machine);
        }
        Ok(())
    }

    /// Writes down that a cluster has other nodes than before.
    fn change(&mut self, control_plane: &str, state: ClusterState) -> Result<()> {
        let made = self.made.get_mut(control_plane).context("the cluster has no control plane")?;
        if let Some(known) = self.lab.clusters.iter_mut().find(|cluster| cluster.name == state.name) {
            known.clone_from(&state);
        }
        self.lab.write()?;
        made.cluster = Cluster::new(&self.lab, &state)?;
        self.show();
        Ok(())
    }

    async fn discard(&mut self, cluster: &Cluster) -> Result<()> {
        cluster.remove().await?;
        self.lab.clusters.retain(|known| known.name != cluster.name());
        self.lab.write()
    }

    fn show(&self) {
        let all = self.made.values().map(|made| made.cluster.clone()).collect();
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = all;
    }
}
