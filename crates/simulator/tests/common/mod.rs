//! What several tests of the simulator begin with.

use serde_json::{Value, json};

/// A workload without a namespace, of one cluster, of pods with a CPU each, that leaves a cluster which is silent for a minute.
pub(crate) fn workload(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "MultiClusterDeployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "placementPolicy": "worst-fit", "numberOfLocations": 1, "onUnreachable": "ReplaceAfter", "replaceAfter": "1m",
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "1"}}}]},
            },
        },
    })
}
