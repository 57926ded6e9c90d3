//! What happens in a simulation: users, administrators of members and faults act, one at a time.

mod clusters;
mod faults;
mod hostile;
mod members;
mod mistakes;
mod users;

use super::invariants::Observer;
use super::readiness::Readiness;
use super::tally::{Drawn, Tally};
use super::{Fleet, PARTIES, apply};
use crate::open_namespace;
use kube::Api;
use portolan_api::ForeignCluster;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// One world and all that is out of order in it.
pub(super) struct Story {
    pub(super) fleet: Fleet,
    pub(super) rng: ChaCha8Rng,
    pub(super) tally: Tally,
    pub(super) observer: Observer,
    pub(super) readiness: Readiness,
    /// The ForeignClusters as they are meant to be, by name.
    declared: BTreeMap<String, Value>,
    /// Who is cut off from which cluster.
    cut: BTreeSet<(&'static str, String)>,
    /// Members whose namespace is closed.
    closed: BTreeSet<usize>,
    /// Members whose namespace was deleted.
    emptied: BTreeSet<usize>,
    /// Nodes that are down: member and node.
    down: BTreeSet<(usize, String)>,
    /// Partial faults, by name: whether it is over after so many acts, and the member.
    faults: BTreeMap<String, (usize, usize)>,
    /// Members that answer what they like, and for how many more acts.
    hostile: BTreeMap<usize, usize>,
    /// Copies that an autoscaler writes: member and workload.
    autoscaled: BTreeSet<(usize, String)>,
    /// Workloads of which somebody changed a copy in a member.
    changed_there: BTreeSet<String>,
    /// Members with hooks, policies, LimitRanges or quotas.
    admitting: BTreeSet<usize>,
    /// Workloads whose last edit was a mistake.
    mistaken: BTreeSet<String>,
}

impl Story {
    pub(super) fn new(fleet: Fleet, rng: ChaCha8Rng, tally: Tally, readiness: Readiness) -> Self {
        Self {
            fleet,
            rng,
            tally,
            observer: Observer::default(),
            readiness,
            declared: BTreeMap::new(),
            cut: BTreeSet::new(),
            closed: BTreeSet::new(),
            emptied: BTreeSet::new(),
            down: BTreeSet::new(),
            faults: BTreeMap::new(),
            hostile: BTreeMap::new(),
            autoscaled: BTreeSet::new(),
            changed_there: BTreeSet::new(),
            admitting: BTreeSet::new(),
            mistaken: BTreeSet::new(),
        }
    }

    /// One thing happens.
    pub(super) async fn act(&mut self) {
        self.go_on().await;
        let name = format!("app{}", self.rng.random_range(0..4));
        let member = self.rng.random_range(0..self.fleet.members.len());
        match self.rng.random_range(0..100) {
            0..=29 => self.ask(&name).await,
            30..=41 => self.mistake(&name).await,
            42..=55 => self.ask_for_more().await,
            56..=67 => self.meddle(member, &name).await,
            68..=79 => self.break_something(member).await,
            80..=89 => self.administer(member).await,
            90..=97 => self.edit_cluster(member).await,
            _ => self.heal(),
        }
    }

    /// What goes on by itself: autoscalers write, faults end, namespaces come back.
    async fn go_on(&mut self) {
        for (member, name) in self.autoscaled.clone() {
            self.scale_copy(member, &name).await;
        }
        self.open_emptied().await;
        let over: Vec<_> =
            self.faults.iter().filter(|(_, (left, _))| *left == 0).map(|(name, _)| name.clone()).collect();
        for name in over {
            self.end_fault(&name);
        }
        self.faults.values_mut().for_each(|(left, _)| *left -= 1);
        self.end_hostility(false);
    }

    /// Makes deleted namespaces anew. One that does not go, as its pods are on a node that is down, is left for later.
    async fn open_emptied(&mut self) {
        for member in std::mem::take(&mut self.emptied) {
            if !self.open(member).await {
                self.emptied.insert(member);
            }
        }
    }

    /// Opens the namespace of a member, as soon as it is gone if it goes; answers whether it is open.
    async fn open(&mut self, member: usize) -> bool {
        let client = self.fleet.members[member].client("user");
        let api: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
        for _ in 0..60 {
            let going = api.get_opt(crate::NAMESPACE).await.ok().flatten();
            if going.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_none()) {
                apply(&client, &open_namespace()).await;
                return true;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        false
    }

    /// Remembers the ForeignClusters as they are.
    pub(super) async fn remember_clusters(&mut self) {
        let api: Api<ForeignCluster> = Api::all(self.fleet.hub.client("user"));
        for cluster in api.list(&Default::default()).await.map(|list| list.items).unwrap_or_default() {
            let name = cluster.metadata.name.clone().unwrap_or_default();
            let mut declared = crate::foreign_cluster(&name);
            declared["spec"] = serde_json::to_value(&cluster.spec).unwrap_or_default();
            self.declared.insert(name, declared);
        }
    }

    /// All that was broken is whole again, and users correct their mistakes.
    pub(super) async fn mend(&mut self) {
        self.heal();
        self.autoscaled.clear();
        for name in self.faults.keys().cloned().collect::<Vec<_>>() {
            self.end_fault(&name);
        }
        self.end_hostility(true);
        if self.tally.has(Drawn::HostileObjects) {
            // What was invented stays believed until it is listed again, which whoever starts does.
            PARTIES.iter().for_each(|party| self.fleet.world.crash(party));
        }
        self.fleet.world.stop_faults();
        for member in 0..self.fleet.members.len() {
            self.fleet.world.hostile(self.fleet.members[member].name(), Vec::new());
        }
        for member in std::mem::take(&mut self.admitting) {
            self.stop_admission(member).await;
        }
        // A namespace is not gone before the pods on a node that is down are.
        for (member, node) in std::mem::take(&mut self.down) {
            self.reboot(member, &node).await;
        }
        self.open_emptied().await;
        assert!(self.emptied.is_empty(), "a namespace does not go although all nodes are up");
        for member in std::mem::take(&mut self.closed) {
            self.open(member).await;
        }
        self.take_back_copies().await;
        self.restore_clusters().await;
        for name in std::mem::take(&mut self.mistaken) {
            self.wish(&name).await;
        }
        self.unpause().await;
    }

    fn count(&mut self, drawn: Drawn) {
        self.tally.add(drawn);
    }

    fn names(&self) -> Vec<String> {
        self.fleet.members.iter().map(|member| member.name().to_owned()).collect()
    }
}
