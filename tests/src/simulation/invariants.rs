//! What must hold at every moment, and what must hold once the storm is over.

use super::Fleet;
use super::jobs::JobsSeen;
use crate::NAMESPACE;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::Api;
use portolan_api::placement::{PendingPlacement, PlacementCause, PlacementStatus, ReplicasMode};
use portolan_api::{MultiClusterDeployment, conditions};
use portolan_core::capacity::{ClusterRoom, NodeFacts, PodFacts, PodShape};
use std::collections::{BTreeMap, BTreeSet};

/// What an observer to whom nothing goes wrong has seen so far.
#[derive(Default)]
pub(super) struct Observer {
    /// Copies that were there at the last look and that their workload wanted there: cluster and workload.
    wanted_copies: BTreeSet<(String, String)>,
    jobs: JobsSeen,
    /// Copies that somebody else took or may have taken: cluster, and workload or all.
    excused: BTreeSet<(String, Option<String>)>,
    /// The greatest epoch that each workload, by uid, was decided in.
    epochs: BTreeMap<String, i64>,
}

impl Observer {
    /// Somebody else takes a copy, or what makes it one.
    pub(super) fn excuse(&mut self, cluster: &str, workload: &str) {
        self.excused.insert((cluster.to_owned(), Some(workload.to_owned())));
    }

    /// Somebody else takes all that is in a cluster, or the cluster from the fleet.
    pub(super) fn excuse_all(&mut self, cluster: &str) {
        self.excused.insert((cluster.to_owned(), None));
        self.jobs.lost();
    }

    /// Looks at the whole fleet; answers what must not be.
    pub(super) async fn look(&mut self, fleet: &Fleet) -> Vec<String> {
        let mut problems: Vec<String> = fleet.world.check().iter().map(|each| format!("{each:?}")).collect();
        let mut copies = BTreeSet::new();
        for member in &fleet.members {
            for copy in deployments(member).await {
                copies.insert((member.name().to_owned(), copy.metadata.name.unwrap_or_default()));
            }
        }
        let mut wanted = BTreeSet::new();
        for workload in fleet.workloads().await {
            problems.extend(conserved(&workload));
            problems.extend(self.goes_back(&workload));
            let name = workload.metadata.name.clone().unwrap_or_default();
            for placed in workload.status.iter().flat_map(|status| &status.placements) {
                if placed.replicas > 0 && workload.metadata.deletion_timestamp.is_none() {
                    wanted.insert((placed.cluster.clone(), name.clone()));
                }
            }
        }
        for (cluster, workload) in &self.wanted_copies {
            let place = (cluster.clone(), workload.clone());
            let excuses = [(cluster.clone(), Some(workload.clone())), (cluster.clone(), None)];
            if excuses.iter().any(|excuse| self.excused.contains(excuse)) {
                continue;
            }
            if wanted.contains(&place) && !copies.contains(&place) {
                problems
                    .push(format!("the copy of {workload} in {cluster} vanished while it was wanted there"));
            }
        }
        problems.extend(self.jobs.look(fleet).await);
        self.wanted_copies = copies.intersection(&wanted).cloned().collect();
        problems
    }
}

impl Observer {
    /// A decision of an older leader never follows one of a newer.
    fn goes_back(&mut self, workload: &MultiClusterDeployment) -> Option<String> {
        let epoch = workload.status.as_ref()?.reservation.as_ref()?.epoch;
        let uid = workload.metadata.uid.clone().unwrap_or_default();
        let last = self.epochs.insert(uid, epoch).unwrap_or(epoch);
        let name = workload.metadata.name.as_deref().unwrap_or_default();
        (epoch < last).then(|| format!("{name}: decided in epoch {epoch} after {last}"))
    }
}

/// Why nothing is decided about a workload: the numbers in its status are of what was placed before.
const UNDECIDED: &[&str] = &["InvalidTemplate", "PolicyUnavailable", "AwaitingMembers"];

/// Replicas placed and pending are those asked for, and no more are ready, whatever happens.
fn conserved(workload: &MultiClusterDeployment) -> Option<String> {
    let status = workload.status.as_ref()?;
    if status.observed_generation != workload.metadata.generation
        || workload.metadata.deletion_timestamp.is_some()
    {
        return None;
    }
    let ready = conditions::find(&status.conditions, conditions::ConditionType::Ready);
    let reason = ready.map_or("no condition", |ready| ready.reason.as_str());
    if UNDECIDED.contains(&reason) {
        return None;
    }
    let locations = i32::try_from(workload.spec.placement.effective_locations()).unwrap_or(i32::MAX);
    let asked = match workload.spec.replicas_mode {
        ReplicasMode::PerLocation => workload.spec.replicas * locations,
        ReplicasMode::Total => workload.spec.replicas,
    };
    // While it is paused, what is placed stays although fewer are asked for.
    let asked = if workload.spec.paused { asked.max(status.replicas) } else { asked };
    let told = status.replicas + status.pending_replicas;
    if status.ready_replicas > status.replicas {
        return Some(format!(
            "{} of {} replicas are said to be ready",
            status.ready_replicas, status.replicas
        ));
    }
    let name = workload.metadata.name.as_deref().unwrap_or_default();
    (told != asked)
        .then(|| format!("{name}: {asked} replicas asked for, {told} placed or pending ({reason})"))
}

/// What must hold when nothing goes wrong any more and time has passed.
pub(super) async fn settled(fleet: &Fleet) -> Vec<String> {
    let mut problems = Vec::new();
    let workloads = fleet.workloads().await;
    let mut wanted: BTreeMap<(String, String), (i32, String)> = BTreeMap::new();
    // Workloads of which fewer replicas are ready where they are wanted than are asked for.
    let mut short: BTreeSet<String> = BTreeSet::new();
    // By member: workloads whose update is stopped by their own old pods, and cannot go on.
    let mut stopped: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for member in &fleet.members {
        stopped.insert(member.name().to_owned(), super::rollouts::waiting(member).await);
    }
    for workload in &workloads {
        let name = workload.metadata.name.clone().unwrap_or_default();
        let Some(status) = &workload.status else {
            problems.push(format!("{name} has no status"));
            continue;
        };
        let ready = conditions::find(&status.conditions, conditions::ConditionType::Ready);
        let placed = conditions::find(&status.conditions, conditions::ConditionType::Placed);
        let kept = placed.is_some_and(|placed| placed.reason == "ReplicasKept");
        let expected = if status.pending_replicas == 0 { "True" } else { "False" };
        // What stays because the workload's own wish cannot be had is not as asked; what stays because a cluster is to
        // be left is.
        let expected = match ready {
            Some(ready) if kept && ready.reason == "ReplicasKept" => "False",
            _ if stopped.values().flatten().any(|uid| workload.metadata.uid.as_ref() == Some(uid)) => "False",
            _ => expected,
        };
        if ready.is_none_or(|ready| ready.status != expected) {
            problems.push(format!("{name} with {} pending is Ready: {ready:?}", status.pending_replicas));
        }
        if status.ready_replicas < status.replicas + status.pending_replicas {
            short.insert(name.clone());
        }
        for placed in &status.placements {
            let told =
                format!("{:?}: {}", placed.state, placed.message.as_deref().unwrap_or("nothing is told"));
            wanted.insert((placed.cluster.clone(), name.clone()), (placed.replicas, told));
        }
    }
    for member in &fleet.members {
        for copy in deployments(member).await {
            let name = copy.metadata.name.clone().unwrap_or_default();
            let replicas = copy.spec.and_then(|spec| spec.replicas).unwrap_or(1);
            let ready = copy.status.and_then(|status| status.ready_replicas).unwrap_or(0);
            match wanted.remove(&(member.name().to_owned(), name.clone())) {
                Some((expected, _)) if expected == replicas => {}
                // What somebody scaled up serves until what is short elsewhere is ready.
                Some((expected, _)) if expected < replicas && replicas == ready && short.contains(&name) => {}
                Some((expected, told)) => problems.push(format!(
                    "{name} in {}: {replicas} replicas, {expected} decided ({told})",
                    member.name()
                )),
                None => problems.push(format!("{name} in {} is an orphan", member.name())),
            }
        }
        let stopped = &stopped[member.name()];
        let mut excused = super::jobs::crowded_out(fleet, member).await;
        excused.extend(stopped.iter().cloned());
        problems.extend(room_left_unused(member, &workloads, &excused).await);
        problems.extend(dependencies(fleet, member, &workloads, stopped).await);
    }
    problems.extend(super::services::settled(fleet, &workloads).await);
    problems.extend(super::jobs::settled(fleet).await);
    problems
        .extend(wanted.keys().map(|(cluster, name)| format!("{name} is not in {cluster} although decided")));
    problems
}

/// The ConfigMap that a template of a simulation refers to.
pub(super) fn referred(template: &serde_json::Value) -> Option<String> {
    let name = template.pointer("/spec/containers/0/envFrom/0/configMapRef/name")?;
    name.as_str().map(str::to_owned)
}

/// What was carried into a member is needed there and as it is in the hub; what is needed and there is, is carried.
async fn dependencies(
    fleet: &Fleet,
    member: &portolan_sandbox::Cluster,
    workloads: &[MultiClusterDeployment],
    stopped: &BTreeSet<String>,
) -> Vec<String> {
    let list = async |cluster: &portolan_sandbox::Cluster| {
        let api: Api<ConfigMap> = Api::namespaced(cluster.client("observer"), NAMESPACE);
        let all = api.list(&Default::default()).await.map(|list| list.items).unwrap_or_default();
        let named = all.into_iter().map(|each| (each.metadata.name.clone().unwrap_or_default(), each.data));
        named.filter(|(name, _)| name.starts_with("config")).collect::<BTreeMap<_, _>>()
    };
    let (sources, carried) = (list(&fleet.hub).await, list(member).await);
    let refers = |workload: &&MultiClusterDeployment| {
        let placed = workload.status.iter().flat_map(|status| &status.placements);
        placed.clone().any(|placed| placed.cluster == member.name())
    };
    let reference = |workload: &MultiClusterDeployment| referred(&workload.spec.template.0);
    let mut needed: BTreeSet<String> = workloads.iter().filter(refers).filter_map(reference).collect();
    // A copy that keeps its former template has what that one refers to, and so have pods that no update takes away.
    let keeps = |workload: &&MultiClusterDeployment| {
        let placed = workload.status.iter().flat_map(|status| &status.placements);
        placed.clone().any(|placed| {
            placed.cluster == member.name() && placed.cause == Some(PlacementCause::NoAlternative)
        })
    };
    let is_stopped = |workload: &MultiClusterDeployment| {
        workload.metadata.uid.as_ref().is_some_and(|uid| stopped.contains(uid))
    };
    let former: BTreeSet<String> = workloads.iter().filter(keeps).filter_map(reference).collect();
    let keeps_any = workloads.iter().any(|workload| keeps(&workload) || is_stopped(workload));
    let jobs = super::jobs::references(fleet, member).await;
    needed.extend(jobs.at_work);
    let mut problems = Vec::new();
    for (name, data) in &carried {
        // What a Job has done is done: it is no more kept current, and goes with it.
        if jobs.at_rest.contains(name) && !needed.contains(name) {
            continue;
        }
        if !needed.contains(name) && keeps_any {
            continue;
        }
        if !needed.contains(name) {
            problems.push(format!("ConfigMap {name} in {} is an orphan", member.name()));
        } else if sources.get(name).is_some_and(|source| source != data) {
            problems.push(format!("ConfigMap {name} in {} is not current", member.name()));
        }
    }
    let lacks = |name: &&String| !former.contains(*name) && sources.contains_key(*name);
    for name in needed.iter().filter(lacks).filter(|name| !carried.contains_key(*name)) {
        problems.push(format!("ConfigMap {name} is needed in {} and not there", member.name()));
    }
    problems
}

/// Whether a workload with a RuntimeClass was placed in a member: what the class costs there is known when its pods are there.
fn has_overhead(member: &str, workloads: &[MultiClusterDeployment]) -> bool {
    workloads.iter().any(|workload| {
        let placed = workload.status.iter().flat_map(|status| &status.placements);
        workload.spec.template.0.pointer("/spec/runtimeClassName").is_some()
            && placed.clone().any(|placed| placed.cluster == member)
    })
}

/// A replica that is pending by policy must not fit anywhere it may go.
async fn room_left_unused(
    member: &portolan_sandbox::Cluster,
    workloads: &[MultiClusterDeployment],
    excused: &BTreeSet<String>,
) -> Vec<String> {
    let client = member.client("observer");
    let classes: Api<RuntimeClass> = Api::all(client);
    let classes = classes.list(&Default::default()).await.map(|list| list.items).unwrap_or_default();
    let pods = pods(member).await;
    let is_excused = |pod: &PodFacts| pod.workload.as_ref().is_some_and(|uid| excused.contains(uid));
    let unbound = pods.iter().filter(|pod| pod.node.is_none() && !pod.finished && !is_excused(pod)).count();
    let mut problems = Vec::new();
    // Replicas whose room is gone, or that admission made larger than they were, stay where they are if no other cluster
    // takes them: their pods wait for a node.
    let stay = |placed: &PlacementStatus| {
        placed.cluster == member.name() && placed.cause == Some(PlacementCause::NoAlternative)
    };
    let kept = workloads
        .iter()
        .flat_map(|workload| &workload.status)
        .any(|status| status.placements.iter().any(stay));
    if unbound > 0 && !kept && !has_overhead(member.name(), workloads) {
        let describe = |pod: &PodFacts| format!("{}: {}", pod.node.as_deref().unwrap_or("-"), pod.requests);
        let (name, pods) = (member.name(), pods.iter().map(describe).collect::<Vec<_>>().join("; "));
        problems
            .push(format!("{unbound} pods in {name} have no node, more was placed there than fits: {pods}"));
    }
    let room = room(member).await;
    for workload in workloads {
        let Some(status) = &workload.status else { continue };
        let Ok(mut template) = workload.spec.template.to_typed() else { continue };
        // What its RuntimeClass costs here comes on top.
        if let Some(spec) = &mut template.spec
            && let Some(class) = &spec.runtime_class_name
        {
            let class = classes.iter().find(|each| each.metadata.name.as_ref() == Some(class));
            spec.overhead = class.and_then(|class| class.overhead.clone()?.pod_fixed);
        }
        let shape = PodShape::of_template(&template);
        let Ok(shape) = shape else { continue };
        let spec = &workload.spec;
        let here = spec.placement.locations.iter().any(|name| name == member.name());
        let anywhere = spec.enable_bursting || (spec.placement.enable_substitution && !here);
        let held = status.placements.iter().find(|placed| placed.cluster == member.name());
        let lacks = held.map_or(0, |placed| placed.replicas) < spec.replicas;
        let may_come = anywhere || (here && lacks && spec.replicas_mode == ReplicasMode::PerLocation);
        // Where the distance is bounded, room may be too far away.
        // For what stays with its former template, the room of the present one is held.
        let may_come = may_come && spec.placement.max_latency.is_none() && !kept;
        if may_come && status.pending_replicas > 0 && room.max_replicas(&shape) > 0 {
            let name = workload.metadata.name.as_deref().unwrap_or_default();
            let told =
                |each: &PendingPlacement| format!("{}: {} {:?}", each.cluster, each.reason, each.message);
            problems.push(format!(
                "{name} waits although {} has room for {}; it is in {}, {} are pending: {}",
                member.name(),
                room.max_replicas(&shape),
                status.locations_summary.as_deref().unwrap_or("no cluster"),
                status.pending_replicas,
                status.pending.iter().map(told).collect::<Vec<_>>().join("; ")
            ));
        }
    }
    problems
}

async fn pods(member: &portolan_sandbox::Cluster) -> Vec<PodFacts> {
    let pods: Api<Pod> = Api::all(member.client("observer"));
    let pods = pods.list(&Default::default()).await.map(|list| list.items).unwrap_or_default();
    pods.iter().map(|pod| PodFacts::of(pod, "portolan.dev/workload")).collect()
}

/// What is free in a member beside the pods that it has.
pub(super) async fn room(member: &portolan_sandbox::Cluster) -> ClusterRoom {
    let nodes: Api<Node> = Api::all(member.client("observer"));
    let nodes = nodes.list(&Default::default()).await.map(|list| list.items).unwrap_or_default();
    let nodes: Vec<_> = nodes.iter().map(NodeFacts::of).collect();
    ClusterRoom::count(&nodes, &pods(member).await)
}

async fn deployments(member: &portolan_sandbox::Cluster) -> Vec<Deployment> {
    let api: Api<Deployment> = Api::namespaced(member.client("observer"), NAMESPACE);
    api.list(&Default::default()).await.map(|list| list.items).unwrap_or_default()
}
