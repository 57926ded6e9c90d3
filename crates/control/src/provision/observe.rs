//! What is seen of one CloudProvisioner's work.

use super::Provision;
use super::cluster_api::{Cluster, MachinePool, clusters, owner};
use super::condition::ApiCondition;
use super::nodes::SeenNode;
use crate::names::PROVISIONER_LABEL;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::ListParams;
use portolan_api::CloudProvisioner;
use portolan_core::provision::{
    ClusterSnapshot, Demand, LabelledCluster, MachineSnapshot, MemberState, Offer, PoolSnapshot, Record,
    Settings, Snapshot, cluster_name,
};
use portolan_runtime::{CallError, call};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// What says how far a Cluster is, and what has failed.
const STAGES: &[&str] =
    &["TopologyReconciled", "InfrastructureReady", "ControlPlaneInitialized", "ControlPlaneAvailable"];

/// A CloudProvisioner, and what is seen of its work.
pub(super) struct Observed {
    pub(super) object: Arc<CloudProvisioner>,
    pub(super) settings: Settings,
    pub(super) record: Record,
    pub(super) snapshot: Snapshot,
    /// The namespaces of its Clusters, by name.
    pub(super) namespaces: BTreeMap<String, String>,
    /// Clusters that carry its uid and are none of its own.
    pub(super) foreign: Vec<String>,
    pub(super) rtt: BTreeMap<String, Duration>,
}

impl Observed {
    /// What the CloudProvisioner could do.
    pub(super) fn offer(&self, now: k8s_openapi::jiff::Timestamp) -> Offer {
        let name = self.object.metadata.name.as_deref().unwrap_or_default();
        Offer::of(name, &self.settings, &self.record, &self.snapshot, self.rtt.clone(), now)
    }
}

impl Provision {
    /// Looks at one CloudProvisioner.
    ///
    /// # Errors
    /// The hub does not answer.
    pub(super) async fn observe(
        &self,
        object: &Arc<CloudProvisioner>,
        settings: Settings,
    ) -> Result<Observed, CallError> {
        let record = object.status.as_ref().map(Record::of).unwrap_or_default();
        let own = record
            .cluster
            .as_ref()
            .map(|cluster| cluster_name(&settings.cluster_name, &settings.uid, cluster.number));
        let found = self.own_clusters(&settings, own.as_deref()).await?;
        let (member, nodes) = self.member(&settings, &record);
        let (mut seen, mut namespaces, mut foreign) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for cluster in found {
            let name = cluster.metadata.name.clone().unwrap_or_default();
            let namespace = cluster.metadata.namespace.clone().unwrap_or_default();
            let number = owner(&cluster)
                .1
                .filter(|number| cluster_name(&settings.cluster_name, &settings.uid, *number) == name);
            let Some(number) = number else {
                foreign.push(format!("{namespace}/{name}"));
                continue;
            };
            let none = BTreeMap::new();
            let nodes = if own.as_ref() == Some(&name) { &nodes } else { &none };
            let mut snapshot = self.cluster(&cluster, number, nodes);
            if snapshot.usable && matches!(member, MemberState::Absent | MemberState::Missing { .. }) {
                snapshot.usable = self.has_kubeconfig(&namespace, &name).await?;
            }
            seen.insert(name.clone(), snapshot);
            namespaces.insert(name, namespace);
        }
        let refused = own.and_then(|name| self.state().refused.get(&name).cloned());
        let snapshot = Snapshot { demand: Demand::default(), clusters: seen, member, rival: None, refused };
        let rtt = self.rtt(object, &settings);
        Ok(Observed { object: Arc::clone(object), settings, record, snapshot, namespaces, foreign, rtt })
    }

    /// The Clusters that carry the uid of a CloudProvisioner. As long as the watch does not show the one that is on record,
    /// the hub is asked: only its answer tells that it does not exist.
    async fn own_clusters(
        &self,
        settings: &Settings,
        own: Option<&str>,
    ) -> Result<Vec<Arc<Cluster>>, CallError> {
        let all = self.clusters.all().into_iter().map(|(_, cluster)| cluster);
        let known: Vec<Arc<Cluster>> =
            all.filter(|cluster| owner(cluster).0 == Some(&settings.uid)).collect();
        if own.is_none_or(|own| known.iter().any(|cluster| cluster.metadata.name.as_deref() == Some(own))) {
            return Ok(known);
        }
        let api = Api::<Cluster>::all_with(self.context.hub.client.clone(), &clusters());
        let params = ListParams::default().labels(&format!("{PROVISIONER_LABEL}={}", settings.uid));
        let listed = call("list Clusters of Cluster API in the hub", api.list(&params)).await?;
        Ok(listed.items.into_iter().map(Arc::new).collect())
    }

    /// A Cluster with its machines; whether its kubeconfig exists is not asked here.
    fn cluster(&self, cluster: &Cluster, number: u32, nodes: &BTreeMap<String, SeenNode>) -> ClusterSnapshot {
        let conditions =
            cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let of_pool = |pool: &MachinePool| {
            let machine_type = pool.machine_type()?.to_owned();
            let machines = self.machines_of(cluster, &pool.name, nodes);
            Some((machine_type, PoolSnapshot { replicas: pool.replicas.unwrap_or(0), machines }))
        };
        ClusterSnapshot {
            number,
            usable: ApiCondition::is_true(conditions, "ControlPlaneAvailable")
                && !ApiCondition::is_false(conditions, "RemoteConnectionProbe"),
            deleting: cluster.metadata.deletion_timestamp.is_some(),
            progress: ApiCondition::progress(conditions, STAGES),
            failure: ApiCondition::failure(conditions, STAGES),
            pools: cluster.spec.pools().iter().filter_map(of_pool).collect(),
        }
    }

    fn machines_of(
        &self,
        cluster: &Cluster,
        pool: &str,
        nodes: &BTreeMap<String, SeenNode>,
    ) -> BTreeMap<String, MachineSnapshot> {
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
        let mut found = BTreeMap::new();
        self.machines.for_each_in(namespace, |key, machine| {
            if machine.cluster == name && machine.pool.as_deref() == Some(pool) {
                let node = machine.node.as_ref().and_then(|node| nodes.get(node));
                // Replicas can find a node once the hub knows it, however long it has been ready.
                let ready_since = node.and_then(|node| Some(machine.ready_since?.max(node.since)));
                let seen = MachineSnapshot {
                    registered: machine.node.is_some(),
                    ready_since,
                    unready_since: machine.unready_since,
                    deleting: machine.deleting,
                    marked: machine.marked,
                    failure: machine.failure.clone(),
                    node: node.map(|seen| seen.node.clone()),
                };
                found.insert(key.name.clone(), seen);
            }
        });
        found
    }

    async fn has_kubeconfig(&self, namespace: &str, cluster: &str) -> Result<bool, CallError> {
        let name = kubeconfig_secret(cluster);
        let secrets: Api<Secret> = Api::namespaced(self.context.hub.client.clone(), namespace);
        let what = format!("look for Secret {namespace}/{name}");
        Ok(call(what, secrets.get_metadata_opt(&name)).await?.is_some())
    }

    /// Round-trip times to other clusters: what the spec says, and what was measured once the cluster had joined.
    fn rtt(&self, object: &CloudProvisioner, settings: &Settings) -> BTreeMap<String, Duration> {
        let mut rtt: BTreeMap<String, Duration> =
            object.spec.latencies.iter().map(|latency| (latency.to.clone(), latency.rtt.0)).collect();
        if let Some(cluster) = self.foreign_cluster(settings) {
            rtt.extend(self.context.fleet.site(&cluster).rtt.clone());
        }
        rtt
    }

    /// All Clusters that carry Portolan's label.
    pub(super) fn labelled(&self, known: &BTreeSet<String>) -> Vec<String> {
        let labelled = |cluster: &Cluster| LabelledCluster {
            namespace: cluster.metadata.namespace.clone().unwrap_or_default(),
            name: cluster.metadata.name.clone().unwrap_or_default(),
            provisioner: owner(cluster).0.unwrap_or_default().to_owned(),
        };
        let all: Vec<LabelledCluster> =
            self.clusters.all().iter().map(|(_, cluster)| labelled(cluster)).collect();
        portolan_core::provision::orphans(&all, known)
    }
}

/// The Secret in which Cluster API keeps the kubeconfig of a Cluster.
pub(super) fn kubeconfig_secret(cluster: &str) -> String {
    format!("{cluster}-kubeconfig")
}
