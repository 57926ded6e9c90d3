//! What is seen of one CloudProvisioner's work.

use super::Provision;
use super::cluster_api::{Cluster, MachinePool, clusters, is_incomplete, owner};
use super::condition::ApiCondition;
use super::nodes::SeenNode;
use super::topology::home_of;
use crate::fleet::{is_outdated, outdated};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use portolan_api::CloudProvisioner;
use portolan_core::provision::{
    ClusterSnapshot, Demand, LabelledCluster, MachineSnapshot, MemberState, Offer, PoolSnapshot, Record,
    Settings, Snapshot, Untouchable, cluster_name,
};
use portolan_runtime::{CallError, call, foreign_text};
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
        let (mut found, unreadable) = self.own_clusters(&settings, own.as_deref()).await?;
        // Of two that have the same name, the one is its own that it has made, where it makes them.
        let home = home_of(object);
        found.sort_by_key(|cluster| {
            let namespace = cluster.metadata.namespace.clone().unwrap_or_default();
            (number(cluster, &settings).is_none(), namespace != home, namespace)
        });
        let (member, nodes) = self.member(&settings, &record);
        let (mut seen, mut namespaces, mut foreign) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for cluster in found {
            let name = cluster.metadata.name.clone().unwrap_or_default();
            let namespace = cluster.metadata.namespace.clone().unwrap_or_default();
            let is_own = own.as_ref() == Some(&name);
            let on_record = record.cluster.as_ref().filter(|_| is_own).map(|cluster| cluster.number);
            let labelled = number(&cluster, &settings);
            let Some(number) = labelled.or(on_record).filter(|_| !seen.contains_key(&name)) else {
                foreign.push(format!("{namespace}/{name}"));
                continue;
            };
            let none = BTreeMap::new();
            let mut snapshot = self.cluster(&cluster, number, if is_own { &nodes } else { &none });
            snapshot.untouchable = labelled.is_none().then_some(Untouchable::NotOwned);
            if snapshot.usable && matches!(member, MemberState::Absent | MemberState::Missing { .. }) {
                snapshot.usable = self.has_kubeconfig(&namespace, &name).await?;
            }
            seen.insert(name.clone(), snapshot);
            namespaces.insert(name, namespace);
        }
        if let (Some(name), Some(cluster), Some(problem)) = (&own, &record.cluster, unreadable) {
            let untouchable = Some(Untouchable::Unreadable(problem));
            let snapshot =
                ClusterSnapshot { number: cluster.number, untouchable, ..ClusterSnapshot::default() };
            seen.entry(name.clone()).or_insert(snapshot);
        }
        let refused = own.and_then(|name| self.state().refused.get(&name).cloned());
        let snapshot = Snapshot {
            demand: Demand::default(),
            clusters: seen,
            member,
            leaving: self.is_leaving(&settings),
            rival: None,
            outdated: self.outdated(object),
            refused,
        };
        let rtt = self.rtt(object, &settings);
        Ok(Observed { object: Arc::clone(object), settings, record, snapshot, namespaces, foreign, rtt })
    }

    /// What the hub has not told for too long of what provisioning rests on, in words, if there is something.
    pub(super) fn outdated(&self, object: &CloudProvisioner) -> Option<String> {
        let mut watches = vec![
            ("Clusters of Cluster API in the hub", self.clusters.health()),
            ("Machines of Cluster API in the hub", self.machines.health()),
            ("ForeignClusters of the hub", self.context.fleet.clusters.health()),
        ];
        if object.spec.cluster_template.is_some() {
            watches.push(("MachineDeployments of Cluster API in the hub", self.deployments.health()));
        }
        watches.into_iter().find(|(_, watch)| is_outdated(watch)).map(|(name, watch)| outdated(name, watch))
    }

    /// The Clusters that carry the uid of a CloudProvisioner, and the one that is on record. As long as the watch does not
    /// show that one, the hub is asked for its name: that no Cluster carries a label does not tell that it does not exist.
    /// If it exists and cannot be read, answers why.
    async fn own_clusters(
        &self,
        settings: &Settings,
        own: Option<&str>,
    ) -> Result<(Vec<Arc<Cluster>>, Option<String>), CallError> {
        // Of one that cannot be read any more, only the past is known.
        let all = self.clusters.all().into_iter();
        let all = all.filter(|(key, _)| self.clusters.health().unreadable(key).is_none());
        let mut known: Vec<Arc<Cluster>> = all
            .map(|(_, cluster)| cluster)
            .filter(|cluster| owner(cluster).0 == Some(&settings.uid))
            .collect();
        let is_known = |own: &&str| known.iter().any(|each| each.metadata.name.as_deref() == Some(*own));
        let Some(own) = own.filter(|own| !is_known(own)) else { return Ok((known, None)) };
        // In all namespaces: that of the class may have been changed since.
        let api = Api::<DynamicObject>::all_with(self.context.hub.client.clone(), &clusters());
        let params = ListParams::default().fields(&format!("metadata.name={own}"));
        let listed =
            call(format!("look for Cluster {own} of Cluster API in the hub"), api.list(&params)).await?;
        let mut unreadable = None;
        for object in listed.items {
            match object.try_parse::<Cluster>() {
                Ok(cluster) => known.push(Arc::new(cluster)),
                Err(error) => unreadable = Some(foreign_text(&error.to_string())),
            }
        }
        Ok((known, unreadable))
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
        let mut pools: BTreeMap<String, PoolSnapshot> =
            cluster.spec.pools().iter().filter_map(of_pool).collect();
        pools.extend(self.deployed(cluster, nodes));
        ClusterSnapshot {
            number,
            usable: ApiCondition::is_true(conditions, "ControlPlaneAvailable")
                && !ApiCondition::is_false(conditions, "RemoteConnectionProbe"),
            deleting: cluster.metadata.deletion_timestamp.is_some(),
            incomplete: is_incomplete(cluster),
            untouchable: None,
            progress: ApiCondition::progress(conditions, STAGES),
            failure: ApiCondition::failure(conditions, STAGES),
            pools,
        }
    }

    /// The pools of a Cluster that is made from templates: its MachineDeployments.
    fn deployed(
        &self,
        cluster: &Cluster,
        nodes: &BTreeMap<String, SeenNode>,
    ) -> BTreeMap<String, PoolSnapshot> {
        let mut found = Vec::new();
        self.deployments.for_each_in(
            cluster.metadata.namespace.as_deref().unwrap_or_default(),
            |key, pool| {
                if Some(&pool.cluster) == cluster.metadata.name.as_ref()
                    && let Some(machine_type) = &pool.machine_type
                {
                    found.push((machine_type.clone(), pool.replicas, key.name.clone()));
                }
            },
        );
        let pool = |(machine_type, replicas, name): (String, u32, String)| {
            (machine_type, PoolSnapshot { replicas, machines: self.machines_of(cluster, &name, nodes) })
        };
        found.into_iter().map(pool).collect()
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
                    created_at: machine.created_at,
                    ready_since,
                    // A node that the member does not have is not ready, whatever Cluster API knows of it.
                    unready_since: machine
                        .unready_since
                        .or(machine.ready_since.filter(|_| node.is_none() && !nodes.is_empty())),
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

/// Which cluster of a CloudProvisioner it is, if its labels and its name say that it is one.
fn number(cluster: &Cluster, settings: &Settings) -> Option<u32> {
    let (uid, number) = owner(cluster);
    let is_named = |number: &u32| {
        Some(cluster_name(&settings.cluster_name, &settings.uid, *number)) == cluster.metadata.name
    };
    number.filter(|_| uid == Some(&settings.uid)).filter(is_named)
}

/// The Secret in which Cluster API keeps the kubeconfig of a Cluster.
pub(super) fn kubeconfig_secret(cluster: &str) -> String {
    format!("{cluster}-kubeconfig")
}
