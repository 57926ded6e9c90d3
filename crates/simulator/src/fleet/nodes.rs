//! The nodes of a member, with what the pods of others request on each.

use super::{Assumption, MemberState};
use crate::scenario::{NodeSpec, NodeTaint, Quantity, TaintEffect};
use k8s_openapi::api::core::v1::{Node, Pod};
use portolan_api::foreigncluster::ForeignClusterStatus;
use portolan_control::names::WORKLOAD_LABEL;
use portolan_core::capacity::{Amounts, PODS, PodFacts};
use std::collections::{BTreeMap, BTreeSet};

/// The taints that Kubernetes itself puts on nodes for what the scenario says otherwise.
const OWN_TAINTS: [&str; 3] =
    ["node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// The workloads that the scenario runs itself.
pub(super) struct Ours {
    /// The identities that their pods carry.
    pub(super) identities: BTreeSet<String>,
    /// What their replicas in this member request together.
    pub(super) requests: Amounts,
}

/// The nodes of a member, and what is assumed about them.
pub(super) fn nodes(
    name: &str,
    state: &MemberState,
    status: &ForeignClusterStatus,
    ours: &Ours,
) -> (Vec<NodeSpec>, Vec<Assumption>) {
    let mut assumptions = Vec::new();
    let nodes = match &state.nodes {
        Ok(nodes) => nodes.iter().map(node).collect(),
        Err(why) => {
            let (nodes, assumed) = reported(name, status);
            assumptions.push(Assumption::new(name, why.reason.clone(), assumed).hint(why.hint.clone()));
            nodes
        }
    };
    let used = match (&state.nodes, &state.pods) {
        (Ok(_), Ok(pods)) => by_node(pods, ours),
        (Ok(_), Err(why)) => {
            let assumed =
                "the pods of others request what the hub reports, and fill one node after the other";
            assumptions.push(Assumption::new(name, why.reason.clone(), assumed).hint(why.hint.clone()));
            filled(&nodes, status, ours)
        }
        (Err(_), _) => filled(&nodes, status, ours),
    };
    let (nodes, full): (Vec<_>, Vec<_>) = nodes
        .into_iter()
        .map(|node| {
            let used = used.get(&node.name).cloned().unwrap_or_default();
            with_used(node, &used)
        })
        .unzip();
    let full: Vec<String> = full.into_iter().flatten().collect();
    if !full.is_empty() {
        let problem = format!("the pods of others request more than {} has", full.join(", "));
        assumptions.push(Assumption::new(name, problem, "these nodes are full"));
    }
    (nodes, assumptions)
}

fn node(node: &Node) -> NodeSpec {
    let status = node.status.clone().unwrap_or_default();
    let spec = node.spec.clone().unwrap_or_default();
    let name = node.metadata.name.clone().unwrap_or_default();
    let ready = status.conditions.iter().flatten().find(|each| each.type_ == "Ready");
    let mut labels = node.metadata.labels.clone().unwrap_or_default();
    labels.retain(|key, value| key != "kubernetes.io/hostname" || *value != name);
    let taints = spec.taints.iter().flatten().filter(|taint| !OWN_TAINTS.contains(&taint.key.as_str()));
    let mut allocatable = Amounts::of("cpu", 0);
    allocatable.set("memory", 0);
    allocatable.add(&Amounts::parse(&status.allocatable.unwrap_or_default()).unwrap_or_default(), 1);
    NodeSpec {
        allocatable: quantities(&allocatable),
        used: BTreeMap::new(),
        labels,
        taints: taints
            .filter_map(|taint| {
                Some(NodeTaint {
                    key: taint.key.clone(),
                    value: taint.value.clone(),
                    effect: effect(&taint.effect)?,
                })
            })
            .collect(),
        unschedulable: spec.unschedulable.unwrap_or(false),
        ready: ready.is_some_and(|ready| ready.status == "True"),
        name,
    }
}

fn effect(name: &str) -> Option<TaintEffect> {
    let all = [TaintEffect::NoSchedule, TaintEffect::PreferNoSchedule, TaintEffect::NoExecute];
    all.into_iter().find(|effect| effect.name() == name)
}

/// Nodes as the status of the ForeignCluster tells them: so many alike as there are.
fn reported(name: &str, status: &ForeignClusterStatus) -> (Vec<NodeSpec>, String) {
    let count = status.nodes.map_or(0, |nodes| nodes.total.clamp(0, 5000));
    let whole = Amounts::parse(&status.capacity).unwrap_or_default();
    if count == 0 || whole.get("cpu") == 0 {
        return (Vec::new(), "no nodes, since its ForeignCluster reports no capacity either".to_owned());
    }
    let mut share = Amounts::default();
    whole.iter().for_each(|(resource, milli)| share.set(resource, floor(resource, milli / i64::from(count))));
    let nodes = (1..=count).map(|number| NodeSpec {
        name: format!("{name}-{number}"),
        allocatable: quantities(&share),
        used: BTreeMap::new(),
        labels: BTreeMap::new(),
        taints: Vec::new(),
        unschedulable: false,
        ready: true,
    });
    let assumed = format!(
        "{count} nodes that are alike, with the capacity that its ForeignCluster reports, filled one after the other by what it reports as used"
    );
    (nodes.collect(), assumed)
}

/// What pods request on each node that the scenario does not run itself.
fn by_node(pods: &[Pod], ours: &Ours) -> BTreeMap<String, Amounts> {
    let mut used: BTreeMap<String, Amounts> = BTreeMap::new();
    for pod in pods.iter().map(|pod| PodFacts::of(pod, WORKLOAD_LABEL)) {
        let is_ours = pod.workload.is_some_and(|workload| ours.identities.contains(&workload));
        let Some(node) = pod.node.filter(|_| !pod.finished && !is_ours) else { continue };
        let sum = used.entry(node).or_default();
        let mut requests = pod.requests;
        requests.set(PODS, 1000);
        sum.add(&requests, 1);
    }
    used
}

/// What the hub reports as taken, without what the scenario runs itself. It fills one node after the other: the replicas that
/// run in the member have room, which equal shares could leave in pieces that are too small.
fn filled(nodes: &[NodeSpec], status: &ForeignClusterStatus, ours: &Ours) -> BTreeMap<String, Amounts> {
    let mut taken = Amounts::parse(&status.capacity).unwrap_or_default();
    match Amounts::parse(&status.available) {
        Ok(available) if !status.available.is_empty() => taken.add(&available, -1),
        _ => taken = Amounts::parse(&status.allocated).unwrap_or_default(),
    }
    taken.add(&ours.requests, -1);
    let mut left = taken.not_below_zero();
    let mut used = BTreeMap::new();
    for node in nodes {
        let mut here = Amounts::default();
        for (resource, amount) in &node.allocatable {
            let part = left.get(resource).min(amount.milli);
            here.set(resource, floor(resource, part));
            left.add(&Amounts::of(resource, part), -1);
        }
        used.insert(node.name.clone(), here);
    }
    used
}

/// Whole units of everything but CPU.
fn floor(resource: &str, milli: i64) -> i64 {
    if resource == "cpu" { milli } else { milli / 1000 * 1000 }
}

/// A node with what is used of it, and its name if that is more than it has.
fn with_used(mut node: NodeSpec, used: &Amounts) -> (NodeSpec, Option<String>) {
    let mut cut = Amounts::default();
    let mut full = false;
    for (resource, milli) in used.iter() {
        let whole = node.allocatable.get(resource).map_or(0, |whole| whole.milli);
        full |= milli > whole;
        cut.set(resource, milli.min(whole));
    }
    node.used = quantities(&cut);
    let full = full.then(|| node.name.clone());
    (node, full)
}

/// The amounts that are not zero, but for CPU and memory.
fn quantities(amounts: &Amounts) -> BTreeMap<String, Quantity> {
    let mut kept = amounts.clone();
    kept.retain(|resource| amounts.get(resource) > 0 || ["cpu", "memory"].contains(&resource));
    let quantity =
        |(resource, quantity): (String, k8s_openapi::apimachinery::pkg::api::resource::Quantity)| {
            let milli = amounts.get(&resource).max(0);
            (resource, Quantity { text: quantity.0, milli })
        };
    kept.not_below_zero().quantities().into_iter().map(quantity).collect()
}
