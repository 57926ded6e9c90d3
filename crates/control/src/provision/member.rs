//! The ForeignCluster that a cloud cluster becomes.

use super::nodes::{CloudNodes, SeenNode};
use super::peer::is_leaving;
use super::{Provision, SETTLES};
use crate::fleet::{Member, Needs};
use crate::names::PROVISIONER_LABEL;
use portolan_api::ForeignCluster;
use portolan_api::conditions::{self, ConditionType};
use portolan_core::provision::{Demand, MemberState, Record, Settings};
use portolan_runtime::Key;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Provision {
    /// The ForeignCluster of a CloudProvisioner, if there is one and it is of this CloudProvisioner.
    pub(super) fn foreign_cluster(&self, settings: &Settings) -> Option<Arc<ForeignCluster>> {
        let found = self.context.fleet.clusters.get(&Key::cluster(&settings.cluster_name))?;
        let label = found.metadata.labels.as_ref().and_then(|labels| labels.get(PROVISIONER_LABEL));
        (label == Some(&settings.uid)).then_some(found)
    }

    /// How the member is, and its nodes by name. One that has joined stays joined, also when the hub has only just begun to
    /// connect to it; it counts as reachable once its nodes and pods were listed.
    pub(super) fn member(
        &self,
        settings: &Settings,
        record: &Record,
    ) -> (MemberState, BTreeMap<String, SeenNode>) {
        let name = &settings.cluster_name;
        let workloads = self.workloads(name);
        let Some(found) = self.foreign_cluster(settings) else {
            let member = match self.context.fleet.clusters.get(&Key::cluster(name)) {
                Some(_) => MemberState::Foreign { workloads },
                None if workloads > 0 => MemberState::Missing { workloads },
                None => MemberState::Absent,
            };
            return (member, BTreeMap::new());
        };
        if found.metadata.deletion_timestamp.is_some() {
            return (MemberState::Leaving { workloads }, BTreeMap::new());
        }
        let conditions = found.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let joined = record.cluster.as_ref().is_some_and(|cluster| cluster.ready_at.is_some());
        if joined || conditions::is_true(conditions, ConditionType::Reachable) {
            let nodes = self.nodes(name);
            let member = MemberState::Joined { reachable: nodes.is_some(), workloads };
            return (member, nodes.unwrap_or_default());
        }
        (MemberState::Joining, BTreeMap::new())
    }

    /// Whether the ForeignCluster is tainted, so that workloads leave it.
    pub(super) fn is_leaving(&self, settings: &Settings) -> bool {
        let tainted = |cluster: Arc<ForeignCluster>| cluster.spec.taints.iter().any(is_leaving);
        self.foreign_cluster(settings).is_some_and(tainted)
    }

    /// The member, if it answers and its nodes and pods are known.
    pub(super) fn known_member(&self, name: &str) -> Option<Arc<Member>> {
        self.context.fleet.member(name).filter(|member| member.is_known(Needs::ROOM))
    }

    /// The nodes of the member, by name, if they are known.
    fn nodes(&self, name: &str) -> Option<BTreeMap<String, SeenNode>> {
        let member = self.known_member(name)?;
        let unbound: Demand =
            self.context.fleet.ledger.transact(|book| book.unbound(name)).into_iter().collect();
        let mut state = self.state();
        let watched = state.nodes.get(name).is_some_and(|nodes| nodes.is_of(&member));
        if !watched {
            let queue = self.queue.clone();
            let seed = self.context.seed.child("provision").child(name);
            let nodes = CloudNodes::watch(&member, seed, move || queue.add_after((), SETTLES));
            state.nodes.insert(name.to_owned(), nodes);
        }
        let now = self.context.clock.now();
        state.nodes.get_mut(name)?.snapshots(&unbound, now)
    }

    /// How many workloads hold room in a cluster.
    fn workloads(&self, name: &str) -> u32 {
        let count = self.context.fleet.ledger.transact(|book| book.count_holders(name));
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}
