//! The members of the fleet.

use super::actuator::Spawner;
use super::identity::Identity;
use super::member::TenantOf;
use super::report::is_peered;
use super::sites::sites;
use super::{KNOWN_WITHIN, Member};
use crate::capacity::Ledger;
use crate::monitor::Queues;
use crate::recovery::{Identities, InitialCopies};
use portolan_api::ForeignCluster;
use portolan_api::clusterreport::CapacityRequest;
use portolan_api::foreigncluster::{ClusterCredentials, ClusterType, TrafficSource};
use portolan_core::placement::Site;
use portolan_runtime::Index;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use tokio::time::Instant;

/// The fleet as it is known: ForeignClusters and the members they stand for.
#[derive(Clone, Default)]
pub struct Fleet {
    /// All ForeignClusters of the hub.
    pub clusters: Index<ForeignCluster>,
    /// The room in its members, and what workloads hold there.
    pub ledger: Ledger,
    /// Who the workloads of the hub are.
    pub(crate) identities: Identities,
    /// What members held when they were first listed.
    pub(crate) initial_copies: InitialCopies,
    sites: Arc<RwLock<BTreeMap<String, Arc<Site>>>>,
    members: Arc<RwLock<BTreeMap<String, Connected>>>,
    unconnected: Arc<RwLock<BTreeSet<String>>>,
    /// When it was first known which clusters there are.
    started: Arc<OnceLock<Instant>>,
    pub(super) spawner: Spawner,
    /// Whether members are asked for their distance to each other.
    pub(super) is_measuring: bool,
    /// The work queues of the controllers, for those who watch over them.
    pub(crate) queues: Queues,
}

#[derive(Clone)]
pub(super) struct Connected {
    pub(super) member: Arc<Member>,
    /// What the connection was made of: if that changes, another connection is needed.
    pub(super) made_of: MadeOf,
    /// Who answers, if that can be told.
    pub(super) identity: Option<Arc<Identity>>,
    /// The version of the Secret whose credential the member has accepted.
    pub(super) proven: Option<String>,
}

/// What a connection is made of. Taints, labels, latencies and the like are no part of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MadeOf {
    pub(super) uid: Option<String>,
    pub(super) type_: ClusterType,
    pub(super) id: String,
    pub(super) credentials: Option<ClusterCredentials>,
    pub(super) traffic: Option<TrafficSource>,
    pub(super) tenant: Option<TenantOf>,
    /// The summary that is read in place of nodes and pods, if so.
    pub(super) summary: Option<CapacityRequest>,
}

impl MadeOf {
    pub(super) fn of(cluster: &ForeignCluster) -> Self {
        Self {
            uid: cluster.metadata.uid.clone(),
            type_: cluster.spec.type_,
            id: cluster.spec.cluster_identity.cluster_id.clone(),
            credentials: cluster.spec.credentials.clone(),
            traffic: cluster.spec.traffic.clone(),
            tenant: cluster.spec.outgoing.as_ref().map(|outgoing| TenantOf {
                namespace: outgoing.tenant_namespace.clone(),
                sees_cluster: outgoing.sees_cluster,
            }),
            summary: cluster
                .spec
                .capacity
                .as_ref()
                .and_then(|capacity| capacity.from_report.clone())
                .filter(|_| is_peered(cluster)),
        }
    }
}

impl Fleet {
    /// A fleet of which nothing is known yet, whose members are asked for their distance to each other or not.
    pub(crate) fn measuring(is_measuring: bool) -> Self {
        Self { is_measuring, ..Self::default() }
    }

    /// The member of this name, once it is connected.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Arc<Member>> {
        self.members
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .map(|each| Arc::clone(&each.member))
    }

    /// Parts with all members: nothing is done or watched in the name of this fleet any more.
    pub(crate) fn dissolve(&self) {
        let members = std::mem::take(&mut *self.members.write().unwrap_or_else(PoisonError::into_inner));
        members.values().for_each(|each| each.member.actuator.clear());
        drop(members);
    }

    /// Runs the actuators of all members, for ever.
    pub(crate) fn actuators(&self) -> impl Future<Output = ()> + Send + use<> {
        self.spawner.clone().run()
    }

    /// What placement sees of a ForeignCluster.
    #[must_use]
    pub fn site(&self, cluster: &ForeignCluster) -> Arc<Site> {
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        let seen = self.sites.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        // One that came this moment is looked at by itself.
        seen.or_else(|| sites(std::iter::once(cluster)).remove(name)).unwrap_or_default()
    }

    /// Whether the process began so lately that all members may still become known: until then nobody decides without
    /// those who are.
    #[must_use]
    pub fn is_starting(&self) -> bool {
        self.started.get().is_none_or(|started| started.elapsed() < KNOWN_WITHIN)
    }

    pub(super) fn look(&self) {
        self.started.get_or_init(Instant::now);
        let all = self.clusters.all();
        let seen = sites(all.iter().map(|(_, cluster)| cluster.as_ref()));
        *self.sites.write().unwrap_or_else(PoisonError::into_inner) = seen;
    }

    /// Whether a connection to this cluster was tried and could not be made.
    #[must_use]
    pub fn is_unconnected(&self, name: &str) -> bool {
        self.unconnected.read().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    pub(super) fn connected(&self, name: &str, made_of: &MadeOf) -> Option<Connected> {
        let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
        members.get(name).filter(|each| each.made_of == *made_of).cloned()
    }

    pub(super) fn join(&self, connected: Connected) {
        let name = connected.member.name.clone();
        self.unconnected.write().unwrap_or_else(PoisonError::into_inner).remove(&name);
        let before = self.members.write().unwrap_or_else(PoisonError::into_inner).insert(name, connected);
        part_with(before);
    }

    pub(super) fn prove(&self, name: &str, version: Option<String>) {
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(connected) = members.get_mut(name) {
            connected.proven = version;
        }
    }

    #[cfg(test)]
    pub(super) fn add_for_tests(&self, member: &Arc<Member>) {
        let made_of = MadeOf {
            uid: None,
            type_: ClusterType::Local,
            id: member.name.clone(),
            credentials: None,
            traffic: None,
            tenant: None,
            summary: None,
        };
        self.join(Connected { member: Arc::clone(member), made_of, identity: None, proven: None });
    }

    pub(super) fn cannot_join(&self, name: &str) {
        let before = self.members.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        part_with(before);
        self.unconnected.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
    }

    pub(super) fn leave(&self, name: &str) {
        self.unconnected.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        let before = self.members.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        part_with(before);
    }
}

/// Parts with a connection: what was to be done through it and has not begun is not done. A member that goes gives its room
/// back to the ledger, whose lock comes before that of the members, so that nobody may hold the latter.
fn part_with(connected: Option<Connected>) {
    if let Some(connected) = connected {
        connected.member.actuator.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_of_taints_labels_or_latencies_is_no_other_connection() {
        let cluster = |spec: serde_json::Value| -> ForeignCluster {
            let identity = serde_json::json!({"clusterID": "a", "clusterName": "a"});
            let mut object = serde_json::json!({
                "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster",
                "metadata": {"name": "a", "uid": "1", "generation": 1}, "spec": {"clusterIdentity": identity},
            });
            for (field, value) in spec.as_object().unwrap() {
                object["spec"][field] = value.clone();
            }
            serde_json::from_value(object).unwrap()
        };
        let before = MadeOf::of(&cluster(serde_json::json!({})));
        let mut edited = cluster(serde_json::json!({
            "taints": [{"key": "a", "effect": "NoSchedule"}], "unschedulable": true, "cloud": true,
            "latencies": [{"to": "b", "rtt": "5ms"}],
        }));
        edited.metadata.generation = Some(2);
        edited.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
        assert_eq!(MadeOf::of(&edited), before);
        let secret = serde_json::json!({"secretRef": {"namespace": "n", "name": "other"}});
        assert_ne!(MadeOf::of(&cluster(serde_json::json!({ "credentials": secret }))), before);
        let mut anew = cluster(serde_json::json!({}));
        anew.metadata.uid = Some("2".to_owned());
        assert_ne!(MadeOf::of(&anew), before, "deleted and made again by the same name");
    }
}
