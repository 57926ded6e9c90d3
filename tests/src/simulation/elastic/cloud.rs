//! A ClusterClass of the simulated cloud.

use serde_json::{Value, json};

/// The namespace of clusters that are made on demand.
pub const CLOUDS: &str = "clouds";

/// The ClusterClass `quick` with the machine type and the region as variables, and its templates.
#[must_use]
pub fn cluster_class() -> Vec<Value> {
    let group = |group: &str| format!("{group}.cluster.x-k8s.io/v1beta2");
    let template = |of: &str, kind: &str, spec: Value| {
        json!({
            "apiVersion": group(of), "kind": kind, "metadata": {"name": "quick", "namespace": CLOUDS},
            "spec": {"template": {"spec": spec}},
        })
    };
    let reference = |of: &str, kind: &str| json!({"templateRef": {"apiVersion": group(of), "kind": kind, "name": "quick"}});
    let variable = |name: &str| json!({"name": name, "required": true, "schema": {"openAPIV3Schema": {"type": "string", "default": "small"}}});
    let class = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass",
        "metadata": {"name": "quick", "namespace": CLOUDS},
        "spec": {
            "infrastructure": reference("infrastructure", "SandboxClusterTemplate"),
            "controlPlane": reference("controlplane", "SandboxControlPlaneTemplate"),
            "workers": {"machineDeployments": [{
                "class": "default",
                "infrastructure": reference("infrastructure", "SandboxMachineTemplate"),
                "bootstrap": reference("bootstrap", "SandboxBootstrapConfigTemplate"),
            }]},
            "variables": [variable("machineType"), variable("region")],
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
        template("infrastructure", "SandboxMachineTemplate", json!({"machineType": "small"})),
        template("bootstrap", "SandboxBootstrapConfigTemplate", json!({})),
        class,
    ]
}
