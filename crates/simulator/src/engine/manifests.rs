//! The manifests that the simulation writes itself.

use super::access::is_namespaced;
use crate::record::TASK_LABEL;
use crate::scenario::{Scenario, Task, TaskKind};
use portolan_api::foreigncluster::StaticLatency;
use serde_json::{Value, json};

/// A manifest with the namespace of the scenario, if it names none and its kind needs one.
pub(super) fn with_namespace(manifest: &Value, namespace: &str) -> Value {
    let mut manifest = manifest.clone();
    let kind = manifest["kind"].as_str().unwrap_or_default();
    if manifest["metadata"]["namespace"].is_null() && is_namespaced(kind) {
        manifest["metadata"]["namespace"] = json!(namespace);
    }
    manifest
}

/// A namespace that is open to placement.
pub(super) fn open_namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": {"portolan.dev/placement": "allowed"}},
    })
}

/// A task as a workload of the hub.
pub(super) fn task(task: &Task, scenario: &Scenario) -> Value {
    let metadata = json!({"name": task.name, "namespace": scenario.namespace});
    let mut spec = json!({"locations": [task.location], "template": template(task)});
    let kind = match task.kind {
        TaskKind::Job => "MultiClusterJob",
        TaskKind::Service => {
            spec["replicas"] = json!(1);
            spec["selector"] = json!({"matchLabels": {TASK_LABEL: task.name}});
            "MultiClusterDeployment"
        }
    };
    let placement = scenario.tasks.as_ref().map(|tasks| tasks.placement.clone()).unwrap_or_default();
    if let Some(fields) = spec.as_object_mut() {
        fields.extend(placement);
    }
    json!({"apiVersion": "portolan.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})
}

/// A task as KubeFed places it: an object in the cluster that it prefers.
pub(super) fn baseline(task: &Task, namespace: &str) -> Value {
    let metadata = json!({"name": task.name, "namespace": namespace});
    match task.kind {
        TaskKind::Job => json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template(task)},
        }),
        TaskKind::Service => json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {TASK_LABEL: task.name}},
                "template": template(task),
            },
        }),
    }
}

fn template(task: &Task) -> Value {
    let (restart, run_time) = match task.kind {
        TaskKind::Job => {
            ("Never", json!({"sandbox.portolan.dev/run-time": format!("{}s", task.duration.as_secs())}))
        }
        TaskKind::Service => ("Always", json!({})),
    };
    json!({
        "metadata": {"labels": {TASK_LABEL: task.name}, "annotations": run_time},
        "spec": {
            "restartPolicy": restart,
            "containers": [{
                "name": "main", "image": "task:1",
                "resources": {"requests": {
                    "cpu": format!("{}m", task.cpu_milli), "memory": task.memory.to_string(),
                }},
            }],
        },
    })
}

/// The way between two clusters, as a ForeignCluster or a CloudProvisioner has it.
pub(super) fn latency(scenario: &Scenario, from: &str, to: &str) -> Option<StaticLatency> {
    let rtt = scenario.rtt(scenario.site_of(from), scenario.site_of(to))?;
    Some(StaticLatency { to: to.to_owned(), rtt })
}
