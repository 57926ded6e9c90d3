//! What the end-to-end tests share: the manifests they apply, the simulation, the script that holds the sandbox against a
//! real API server, and what is said to agents on nodes of the lab.

pub mod conformance;
pub mod migration;
pub mod sequences;
pub mod simulation;
pub mod tenants;

use serde_json::{Value, json};

/// The namespace that the tests work in.
pub const NAMESPACE: &str = "shop";

/// A ForeignCluster whose kubeconfig is in the Secret of the same name in namespace `portolan`.
#[must_use]
pub fn foreign_cluster(name: &str) -> Value {
    json!({
        "apiVersion": "portolan.dev/v1alpha1",
        "kind": "ForeignCluster",
        "metadata": {"name": name},
        "spec": {
            "clusterIdentity": {"clusterID": name, "clusterName": name},
            "credentials": {"secretRef": {"namespace": "portolan", "name": name}},
        },
    })
}

/// The namespace as a member opts it in.
#[must_use]
pub fn open_namespace() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {"portolan.dev/placement": "allowed"}},
    })
}

/// An autoscaler of the MultiClusterDeployment `target` that aims at half of the CPU that pods ask for.
#[must_use]
pub fn autoscaler(name: &str, target: &str, least: i32, most: i32) -> Value {
    json!({
        "apiVersion": "portolan.dev/v1alpha1",
        "kind": "MultiClusterHorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "scaleTargetRef": {"kind": "MultiClusterDeployment", "name": target},
            "minReplicas": least, "maxReplicas": most,
            "metrics": [{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50},
            }}],
        },
    })
}

/// A MultiClusterDeployment of small pods that do nothing, with more fields of its spec.
#[must_use]
pub fn workload(name: &str, replicas: i32, more: Value) -> Value {
    let mut object = json!({
        "apiVersion": "portolan.dev/v1alpha1",
        "kind": "MultiClusterDeployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{
                        "name": "main",
                        "image": "portolan.test/busybox:1",
                        "command": ["sh", "-c", "while true; do sleep 1; done"],
                        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
                    }],
                },
            },
        },
    });
    if let (Some(spec), Value::Object(more)) = (object["spec"].as_object_mut(), more) {
        spec.extend(more);
    }
    object
}

/// A MultiClusterService on port 80 for the pods with these labels.
#[must_use]
pub fn service(name: &str, selector: Value) -> Value {
    json!({
        "apiVersion": "portolan.dev/v1alpha1",
        "kind": "MultiClusterService",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"selector": selector, "ports": [{"port": 80}]},
    })
}

/// A MultiClusterJob of small pods that take ten seconds, with more fields of its spec.
#[must_use]
pub fn job(name: &str, completions: i32, parallelism: i32, more: Value) -> Value {
    let mut object = json!({
        "apiVersion": "portolan.dev/v1alpha1",
        "kind": "MultiClusterJob",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "completions": completions,
            "parallelism": parallelism,
            "template": {
                "metadata": {"annotations": {"sandbox.portolan.dev/run-time": "10s"}},
                "spec": {
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{
                        "name": "main",
                        "image": "portolan.test/busybox:1",
                        "command": ["sleep", "2"],
                        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
                    }],
                },
            },
        },
    });
    if let (Some(spec), Value::Object(more)) = (object["spec"].as_object_mut(), more) {
        spec.extend(more);
    }
    object
}
