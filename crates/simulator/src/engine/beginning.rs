//! What there is before time is counted: the nodes of members with the pods of others, and replicas that are placed already.

use super::{SimulationError, access, manifests};
use crate::scenario::{ClusterSpec, NodeSpec, Quantity, Scenario};
use kube::Client;
use portolan_core::capacity::{CPU, MEMORY, PODS};
use portolan_sandbox::{Cluster, ClusterConfig, NodeConfig};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How many pods a node takes that does not say it.
const PODS_PER_NODE: i64 = 110;

/// The resources that a pod requests for the pods of others. Of the other resources, the node has less.
const REQUESTED: [&str; 3] = [CPU, MEMORY, "ephemeral-storage"];

/// A member with its nodes.
pub(super) fn cluster(spec: &ClusterSpec) -> ClusterConfig {
    let config = ClusterConfig::named(&spec.name);
    let config = match &spec.nodes {
        Some(nodes) => {
            config.nodes(usize::from(nodes.count), NodeConfig::new(&nodes.cpu.text, &nodes.memory.text))
        }
        None => config,
    };
    spec.node_list.iter().fold(config, |config, each| config.node(&each.name, node(each)))
}

fn node(spec: &NodeSpec) -> NodeConfig {
    let text = |resource: &str| spec.allocatable.get(resource).map_or("0", |amount| amount.text.as_str());
    let mut node =
        NodeConfig::new(text(CPU), text(MEMORY)).pods(pods(spec)).unschedulable(spec.unschedulable);
    for (resource, whole) in &spec.allocatable {
        if [CPU, MEMORY, PODS].contains(&resource.as_str()) {
            continue;
        }
        let used = spec.used.get(resource).filter(|_| !REQUESTED.contains(&resource.as_str()));
        let left = match used {
            Some(used) => format!("{}m", whole.milli.saturating_sub(used.milli).max(0)),
            None => whole.text.clone(),
        };
        node = node.resource(resource, left);
    }
    let node = spec.labels.iter().fold(node, |node, (key, value)| node.label(key, value));
    let taints = spec.taints.iter();
    taints.fold(node, |node, taint| node.taint(&taint.key, taint.value.as_deref(), taint.effect.name()))
}

/// How many pods the node takes beside those of others, for which one pod stands.
fn pods(spec: &NodeSpec) -> u32 {
    let count = |amounts: &BTreeMap<String, Quantity>| amounts.get(PODS).map(|amount| amount.milli / 1000);
    let free = count(&spec.allocatable).unwrap_or(PODS_PER_NODE) - count(&spec.used).unwrap_or(0);
    let standing = i64::from(!requests(spec).is_empty());
    u32::try_from((free + standing).max(0)).unwrap_or(u32::MAX)
}

fn requests(spec: &NodeSpec) -> BTreeMap<&str, &str> {
    let used = spec
        .used
        .iter()
        .filter(|(resource, amount)| amount.milli > 0 && REQUESTED.contains(&resource.as_str()));
    used.map(|(resource, amount)| (resource.as_str(), amount.text.as_str())).collect()
}

/// The namespaces of the scenario that a member opens.
pub(super) fn open_namespaces(spec: &ClusterSpec, all: &BTreeSet<String>) -> Vec<String> {
    match &spec.namespaces {
        Some(open) => open.clone(),
        None => all.iter().cloned().collect(),
    }
}

/// The namespaces of the scenario exist in a member also where they are not open.
async fn closed_namespaces(
    spec: &ClusterSpec,
    all: &BTreeSet<String>,
    admin: &Client,
) -> Result<(), SimulationError> {
    let Some(open) = &spec.namespaces else { return Ok(()) };
    for name in all.iter().filter(|name| !open.contains(name)) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        access::apply(admin, &namespace).await?;
    }
    Ok(())
}

/// What a member has beside its nodes: the pods of others, nodes that do not answer, and further fields of its ForeignCluster.
pub(super) async fn member(
    spec: &ClusterSpec,
    namespaces: &BTreeSet<String>,
    hub: &Client,
    member: &Cluster,
) -> Result<(), SimulationError> {
    let admin = member.client("admin");
    closed_namespaces(spec, namespaces, &admin).await?;
    for (index, node) in spec.node_list.iter().enumerate() {
        if !requests(node).is_empty() {
            access::apply(&admin, &standing_pod(index, node)).await?;
        }
        if !node.ready {
            member.fail_node(&node.name);
        }
    }
    if spec.spec.is_empty() {
        return Ok(());
    }
    let object = json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster",
        "metadata": {"name": spec.name}, "spec": spec.spec,
    });
    access::apply(hub, &object).await
}

/// One pod that stands for the pods of others on a node. It stays there, whatever becomes of the node.
fn standing_pod(index: usize, node: &NodeSpec) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("other-pods-{}", index + 1), "namespace": "kube-system"},
        "spec": {
            "nodeName": node.name,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "main", "image": "other:1", "resources": {"requests": requests(node)}}],
        },
    })
}

/// Writes the MultiClusterDeployments that are placed already, before a controller sees them.
pub(super) async fn place(scenario: &Scenario, hub: &Client) -> Result<(), SimulationError> {
    for step in scenario.objects.iter().filter(|step| !step.placed.is_empty()) {
        let Some(manifest) = &step.manifest else { continue };
        let object = manifests::with_namespace(manifest, &scenario.namespace);
        access::apply(hub, &object).await?;
        access::set_status(hub, &object, &status(&step.placed)).await?;
    }
    Ok(())
}

fn status(placed: &BTreeMap<String, u32>) -> Value {
    let held = placed.iter().filter(|(_, replicas)| **replicas > 0);
    let placements: Vec<Value> =
        held.map(|(cluster, replicas)| json!({"cluster": cluster, "replicas": replicas})).collect();
    let total: u32 = placed.values().fold(0, |sum, replicas| sum.saturating_add(*replicas));
    json!({"observedGeneration": 1, "replicas": total, "placements": placements})
}
