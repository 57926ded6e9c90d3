//! What a cluster has from its first moment.

use serde_json::{Map, Value, json};

use crate::api::{Api, Writer};
use crate::auth::bootstrap_roles;
use crate::error::ApiError;
use crate::world::{ClusterConfig, NodeConfig};

const NAMESPACES: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

/// Makes the first roles, namespaces, the service of the API server, and the nodes.
pub(crate) fn bootstrap(api: &mut Api, config: &ClusterConfig) {
    let writer = Writer::named("kube-apiserver");
    if let Err(error) = bootstrap_roles(api) {
        api.log.record(api.now(), &api.cluster, &format!("bootstrap of roles: {error}"), &[]);
    }
    let mut objects = Vec::new();
    for namespace in NAMESPACES {
        objects.push(("", "namespaces", "", json!({"metadata": {"name": namespace}})));
    }
    objects.push(("", "services", "default", api_service()));
    for (index, (name, node)) in config.nodes.iter().enumerate() {
        objects.push(("", "nodes", "", node_object(name, index, node, &api.time())));
    }
    for (group, plural, namespace, object) in objects {
        let made: Result<_, ApiError> =
            api.row(group, plural).and_then(|row| api.create(&row, namespace, object, &writer));
        if let Err(error) = made {
            // Only a node's name or size can be wrong here, and that is the caller's to see.
            let text = format!("bootstrap of {plural}: {error}");
            tracing::error!(cluster = %api.cluster, "{text}");
            api.log.record(api.now(), &api.cluster, &text, &[]);
        }
    }
}

fn api_service() -> Value {
    json!({
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
    })
}

/// A simulated node that is ready.
pub(crate) fn node_object(name: &str, index: usize, node: &NodeConfig, time: &Value) -> Value {
    let mut labels: Map<String, Value> = Map::from_iter([
        ("kubernetes.io/hostname".to_owned(), json!(name)),
        ("kubernetes.io/os".to_owned(), json!("linux")),
        ("kubernetes.io/arch".to_owned(), json!("amd64")),
    ]);
    labels.extend(node.labels.iter().map(|(key, value)| (key.clone(), json!(value))));
    let mut size = json!({"cpu": node.cpu, "memory": node.memory, "pods": node.pods.to_string(), "ephemeral-storage": "100Gi"});
    for (resource, amount) in &node.resources {
        size[resource] = json!(amount);
    }
    let mut spec = json!({
        "podCIDR": format!("10.244.{}.0/24", index % 256), "podCIDRs": [format!("10.244.{}.0/24", index % 256)],
    });
    if !node.taints.is_empty() {
        spec["taints"] = json!(node.taints);
    }
    if node.unschedulable {
        spec["unschedulable"] = json!(true);
    }
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": time, "lastTransitionTime": time,
        })
    };
    json!({
        "metadata": {"name": name, "labels": labels, "annotations": {"sandbox.portolan.dev/simulated": "true"}},
        "spec": spec,
        "status": {
            "capacity": size,
            "allocatable": size,
            "addresses": [
                {"type": "InternalIP", "address": format!("172.18.{}.{}", index / 250, index % 250 + 2)},
                {"type": "Hostname", "address": name},
            ],
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            ],
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux", "kubeletVersion": "v1.36.3",
                "kubeProxyVersion": "", "containerRuntimeVersion": "sandbox://1", "osImage": "Sandbox", "kernelVersion": "6.0.0",
                "machineID": name, "systemUUID": name, "bootID": name,
            },
        },
    })
}
