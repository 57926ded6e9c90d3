//! What is in the clusters now, as far as it is recorded.

use super::workload::Workload;
use jiff::Timestamp;
use portolan_core::capacity::milli;
use portolan_sandbox::Change;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The label of the pods of a task.
pub(crate) const TASK_LABEL: &str = "simulation.portolan.dev/task";

/// Namespace and name.
pub(super) type Key = (String, String);

/// What is in the clusters now.
#[derive(Default)]
pub(super) struct State {
    /// When time began to be counted.
    pub(super) start: Option<Timestamp>,
    /// The clusters by name, but for the hub.
    pub(super) clusters: BTreeMap<String, ClusterState>,
    /// The MultiClusterDeployments of the hub.
    pub(super) workloads: BTreeMap<Key, Workload>,
    /// The tasks whose pods have ended.
    pub(super) finished: BTreeSet<String>,
}

/// What is in a cluster now.
#[derive(Default)]
pub(super) struct ClusterState {
    /// Thousandths of a CPU of each node that is ready.
    pub(super) nodes: BTreeMap<String, i64>,
    pub(super) pods: BTreeMap<Key, Pod>,
}

/// A pod that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pod {
    /// Thousandths of a CPU that it requests.
    pub(super) cpu: i64,
    /// The node that it is bound to.
    pub(super) node: Option<String>,
    /// Whether its containers run.
    pub(super) running: bool,
    /// The task that it is of.
    pub(super) task: Option<String>,
}

impl ClusterState {
    /// Whether a pod is on a node that is ready.
    pub(super) fn is_on_a_node(&self, pod: &Pod) -> bool {
        pod.node.as_ref().is_some_and(|node| self.nodes.contains_key(node))
    }
}

impl State {
    /// Notes a change.
    pub(super) fn take(&mut self, change: &Change<'_>) {
        match (change.cluster, change.table) {
            ("hub", "portolan.dev/multiclusterdeployments") => self.workload(change),
            ("hub", _) => {}
            (_, "/pods") => self.pod(change),
            (_, "/nodes") => self.node(change),
            (_, "apps/deployments") => self.copy(change),
            _ => {}
        }
    }

    /// Forgets a cluster that is gone.
    pub(super) fn forget(&mut self, cluster: &str, seconds: f64) {
        self.clusters.remove(cluster);
        self.workloads.values_mut().for_each(|workload| workload.forget(cluster, seconds));
    }

    /// How many seconds have passed since the beginning.
    pub(super) fn seconds(&self, now: Timestamp) -> f64 {
        self.start.map_or(0.0, |start| now.duration_since(start).as_secs_f64().max(0.0))
    }

    fn pod(&mut self, change: &Change<'_>) {
        let object = change.object();
        let key = key(&object);
        let task = object.pointer("/metadata/labels").and_then(|labels| labels.get(TASK_LABEL));
        let task = task.and_then(Value::as_str).map(str::to_owned);
        let phase = text(&object, "/status/phase");
        let ended = matches!(phase, "Succeeded" | "Failed");
        if phase == "Succeeded" {
            self.finished.extend(task.clone());
        }
        let pods = &mut self.clusters.entry(change.cluster.to_owned()).or_default().pods;
        if change.is_deletion() || ended {
            pods.remove(&key);
            return;
        }
        let node = Some(text(&object, "/spec/nodeName")).filter(|name| !name.is_empty()).map(str::to_owned);
        pods.insert(key, Pod { cpu: requested(&object), node, running: phase == "Running", task });
    }

    fn node(&mut self, change: &Change<'_>) {
        let object = change.object();
        let name = text(&object, "/metadata/name").to_owned();
        let nodes = &mut self.clusters.entry(change.cluster.to_owned()).or_default().nodes;
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
        let ready = |each: &Value| text(each, "/type") == "Ready" && text(each, "/status") == "True";
        if change.is_deletion() || !conditions.into_iter().flatten().any(ready) {
            nodes.remove(&name);
        } else {
            nodes.insert(name, milli(text(&object, "/status/allocatable/cpu")).unwrap_or(0));
        }
    }

    fn copy(&mut self, change: &Change<'_>) {
        let object = change.object();
        let seconds = self.seconds(change.now);
        if let Some(workload) = self.workloads.get_mut(&key(&object)) {
            let ready = object.pointer("/status/readyReplicas").and_then(Value::as_i64).unwrap_or(0);
            let ready = if change.is_deletion() { 0 } else { ready };
            workload.set_ready(change.cluster, ready, seconds);
        }
    }

    fn workload(&mut self, change: &Change<'_>) {
        let object = change.object();
        let seconds = self.seconds(change.now);
        let workload = self.workloads.entry(key(&object)).or_default();
        let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
        let replicas = number("/spec/replicas").unwrap_or(1);
        let locations = object.pointer("/spec/locations").and_then(Value::as_array).map_or(0, Vec::len);
        let locations = match text(&object, "/spec/replicasMode") {
            "Total" => 1,
            _ if locations > 0 => i64::try_from(locations).unwrap_or(1),
            _ => number("/spec/numberOfLocations").unwrap_or(1),
        };
        let leaving = change.is_deletion() || object.pointer("/metadata/deletionTimestamp").is_some();
        workload.set_desired(if leaving { 0 } else { replicas * locations }, seconds);
        workload.pending = if leaving { 0 } else { number("/status/pendingReplicas").unwrap_or(0) };
    }
}

fn key(object: &Value) -> Key {
    (text(object, "/metadata/namespace").to_owned(), text(object, "/metadata/name").to_owned())
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Thousandths of a CPU that the containers of a pod request together.
fn requested(pod: &Value) -> i64 {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array).into_iter().flatten();
    containers.map(|each| milli(text(each, "/resources/requests/cpu")).unwrap_or(0)).sum()
}
