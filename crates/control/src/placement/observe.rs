//! What a decision is taken on: every cluster of the fleet as the workload sees it. Indexes only, no requests.

use super::{Controller, Workload};
use crate::fleet::{DeploymentFacts, Member};
use crate::names::{OPT_IN, OPT_IN_LABEL};
use portolan_api::ForeignCluster;
use portolan_core::capacity::{ClusterRoom, NodeFacts, PodFacts};
use portolan_core::placement::{Candidate, Refusal, Wanted};
use portolan_runtime::Key;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A cluster, as one workload sees it.
pub(super) struct Seen {
    pub(super) candidate: Candidate,
    /// The member, once it is connected.
    pub(super) member: Option<Arc<Member>>,
    /// The workload's copy there, as last seen.
    pub(super) copy: Option<Arc<DeploymentFacts>>,
    /// Whether the member answers now.
    pub(super) answers: bool,
}

impl Controller {
    /// Looks at all clusters for one workload; nothing if a cluster is not known well enough yet to decide.
    pub(super) fn observe(&self, key: &Key, workload: &Workload) -> Option<BTreeMap<String, Seen>> {
        if !self.fleet.clusters.synced() || !self.workloads.synced() {
            return None;
        }
        let clusters = self.fleet.clusters.all();
        clusters
            .into_iter()
            .map(|(name, cluster)| Some((name.name, self.see(key, workload, &cluster)?)))
            .collect()
    }

    fn see(&self, key: &Key, workload: &Workload, cluster: &ForeignCluster) -> Option<Seen> {
        let name = cluster.metadata.name.clone().unwrap_or_default();
        let member = self.fleet.member(&name);
        let silence = member.as_ref().and_then(|member| member.reach.silence());
        let answers = member.as_ref().is_some_and(|member| member.reach.answers());
        let known = match &member {
            Some(member) => silence.is_some() || (answers && member.known()),
            None => self.fleet.is_unconnected(&name),
        };
        if !known {
            return None;
        }
        let version = workload.object.metadata.resource_version.as_deref();
        let recorded = || workload.held().find(|(held, _)| *held == name).map_or(0, |(_, replicas)| replicas);
        let held = self.assumed.replicas(key, version, &name).unwrap_or_else(recorded);
        let copy = member.as_ref().and_then(|member| member.deployments.get(key));
        let copy = copy.filter(|copy| copy.workload.as_deref() == Some(workload.uid()));
        let (room, settled) =
            member.as_ref().map(|member| self.room(key, workload, member)).unwrap_or_default();
        let candidate = Candidate {
            closed: closed(cluster, member.as_deref(), silence, &key.namespace),
            labels: cluster.metadata.labels.clone().unwrap_or_default(),
            taints: cluster.spec.taints.clone(),
            rtt: self.latencies(&name, cluster),
            cloud: cluster.spec.cloud,
            room,
            settled,
            held,
            name,
        };
        Some(Seen { candidate, member, copy, answers })
    }

    /// The round-trip times from a cluster to the others, as either side of each pair gives them.
    fn latencies(&self, name: &str, cluster: &ForeignCluster) -> BTreeMap<String, Duration> {
        let mut latencies = BTreeMap::new();
        self.fleet.clusters.for_each(|other, foreign| {
            let back = foreign.spec.latencies.iter().find(|each| each.to == name);
            latencies.extend(back.map(|each| (other.name.clone(), each.rtt.0)));
        });
        latencies.extend(cluster.spec.latencies.iter().map(|each| (each.to.clone(), each.rtt.0)));
        latencies
    }

    /// The room in a member for one workload, and how many of its pods are settled there.
    ///
    /// A pod is settled when it has a node and asks for what the template asks for now; others of the workload are to
    /// be replaced and leave their room to it. What other workloads hold is theirs, also where they have no pods yet.
    fn room(&self, key: &Key, workload: &Workload, member: &Member) -> (ClusterRoom, u32) {
        let (nodes, pods) = (member.nodes.all(), member.pods.all());
        let mut of_workload: BTreeMap<&str, Vec<&PodFacts>> = BTreeMap::new();
        for (_, pod) in pods.iter().filter(|(_, pod)| pod.node.is_some() && !pod.finished) {
            of_workload.entry(pod.workload.as_deref().unwrap_or_default()).or_default().push(pod);
        }
        let settled = |owner: &Workload| {
            let (Ok(shape), Some(pods)) = (&owner.shape, of_workload.get(owner.uid())) else { return 0 };
            u32::try_from(pods.iter().filter(|pod| pod.is_of(owner.uid(), shape)).count()).unwrap_or(u32::MAX)
        };
        let to_be_replaced = |pod: &PodFacts| {
            pod.workload.as_deref() == Some(workload.uid())
                && !workload.shape.as_ref().is_ok_and(|shape| pod.is_of(workload.uid(), shape))
        };
        let facts = nodes.iter().map(|(_, node)| node.as_ref()).collect::<Vec<&NodeFacts>>();
        let mut room = ClusterRoom::count(
            facts,
            pods.iter().map(|(_, pod)| pod.as_ref()).filter(|pod| !to_be_replaced(pod)),
        );
        self.workloads.for_each(|other_key, other| {
            let Ok(shape) = &other.shape else { return };
            if other_key == key {
                return;
            }
            let version = other.object.metadata.resource_version.as_deref();
            let recorded =
                || other.held().find(|(name, _)| *name == member.name).map_or(0, |(_, replicas)| replicas);
            let held = self.assumed.replicas(other_key, version, &member.name).unwrap_or_else(recorded);
            if held > 0 {
                room.reserve(shape, held.saturating_sub(settled(other)));
            }
        });
        (room, settled(workload))
    }
}

/// Why nothing new may go to the cluster, whatever room it has.
fn closed(
    cluster: &ForeignCluster,
    member: Option<&Member>,
    silence: Option<String>,
    namespace: &str,
) -> Option<Refusal> {
    let refusal = |reason, message| Some(Refusal { reason, message });
    let Some(member) = member else {
        return refusal(
            "NotConnected",
            "it is not connected yet: see the Ready condition of its ForeignCluster".into(),
        );
    };
    if let Some(silence) = silence {
        return refusal("Unreachable", format!("its API server does not answer: {silence}"));
    }
    if cluster.metadata.deletion_timestamp.is_some() {
        return refusal("Leaving", "its ForeignCluster is being deleted".into());
    }
    if cluster.spec.unschedulable {
        return refusal("Unschedulable", "its ForeignCluster has spec.unschedulable: true".into());
    }
    match member.namespaces.get(&Key::cluster(namespace)).as_deref() {
        Some(true) => None,
        Some(false) => refusal(
            "NamespaceClosed",
            format!(
                "its namespace {namespace} does not let workloads in: label it {OPT_IN_LABEL}={OPT_IN} there"
            ),
        ),
        None => refusal(
            "NamespaceMissing",
            format!("it has no namespace {namespace}: create it there with label {OPT_IN_LABEL}={OPT_IN}"),
        ),
    }
}

/// What the workload asks for, in the terms of the decision. A template that cannot be read asks for nothing.
pub(super) fn wanted(workload: &Workload) -> Result<Wanted, String> {
    let spec = &workload.object.spec;
    let weight = |weight: i32| u32::try_from(weight).unwrap_or(0);
    Ok(Wanted {
        shape: workload.shape.clone()?,
        replicas: u32::try_from(spec.replicas).unwrap_or(0),
        mode: spec.replicas_mode,
        weights: spec.weights.iter().map(|each| (each.cluster.clone(), weight(each.weight))).collect(),
        placement: spec.placement.clone(),
        bursting: spec.enable_bursting,
    })
}
