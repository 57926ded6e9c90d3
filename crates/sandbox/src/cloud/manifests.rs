//! A ClusterClass of the simulated cloud, as a user would write one.

use serde_json::{Value, json};

/// A ClusterClass and its templates, all of the same namespace and name. The variables are texts; `machineType`, which has this
/// default, decides what workers are made of.
#[must_use]
pub fn cluster_class(namespace: &str, name: &str, machine_type: &str, others: &[&str]) -> Vec<Value> {
    let group = |group: &str| format!("{group}.cluster.x-k8s.io/v1beta2");
    let metadata = json!({"name": name, "namespace": namespace});
    let template = |of: &str, kind: &str, spec: Value| {
        json!({
            "apiVersion": group(of), "kind": kind, "metadata": metadata, "spec": {"template": {"spec": spec}},
        })
    };
    let reference =
        |of: &str, kind: &str| json!({"templateRef": {"apiVersion": group(of), "kind": kind, "name": name}});
    let variable = |name: &str, default: &str| {
        json!({
            "name": name, "required": true, "schema": {"openAPIV3Schema": {"type": "string", "default": default}},
        })
    };
    let others = others.iter().map(|name| variable(name, ""));
    let variables: Vec<Value> =
        std::iter::once(variable("machineType", machine_type)).chain(others).collect();
    let class = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "metadata": metadata,
        "spec": {
            "infrastructure": reference("infrastructure", "SandboxClusterTemplate"),
            "controlPlane": reference("controlplane", "SandboxControlPlaneTemplate"),
            "workers": {"machineDeployments": [{
                "class": "default",
                "infrastructure": reference("infrastructure", "SandboxMachineTemplate"),
                "bootstrap": reference("bootstrap", "SandboxBootstrapConfigTemplate"),
            }]},
            "variables": variables,
            "patches": [{"name": "machineType", "definitions": [{
                "selector": {
                    "apiVersion": group("infrastructure"), "kind": "SandboxMachineTemplate",
                    "matchResources": {"machineDeploymentClass": {"names": ["default"]}},
                },
                "jsonPatches": [{
                    "op": "replace", "path": "/spec/template/spec/machineType",
                    "valueFrom": {"variable": "machineType"},
                }],
            }]}],
        },
    });
    vec![
        template("infrastructure", "SandboxClusterTemplate", json!({})),
        template("controlplane", "SandboxControlPlaneTemplate", json!({})),
        template("infrastructure", "SandboxMachineTemplate", json!({"machineType": machine_type})),
        template("bootstrap", "SandboxBootstrapConfigTemplate", json!({})),
        class,
    ]
}
