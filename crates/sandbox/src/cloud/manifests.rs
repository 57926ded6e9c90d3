//! A ClusterClass of the simulated cloud, and templates for clusters without one, as a user would write them.

use serde_json::{Value, json};

/// A ClusterClass and its templates, all of the same namespace and name. The variables are texts; `machineType`, which has this
/// default, decides what workers are made of.
#[must_use]
pub fn cluster_class(namespace: &str, name: &str, machine_type: &str, others: &[&str]) -> Vec<Value> {
    let metadata = json!({"name": name, "namespace": namespace});
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
    let mut all = common(namespace, name);
    all.extend([machine_template(namespace, name, machine_type), class]);
    all
}

/// The templates of clusters that are made without a ClusterClass: those of a cluster, all of this name, and one for machines
/// of each type, with the name of the type appended.
#[must_use]
pub fn cluster_templates(namespace: &str, name: &str, machine_types: &[&str]) -> Vec<Value> {
    let machines = machine_types
        .iter()
        .map(|machine_type| machine_template(namespace, &format!("{name}-{machine_type}"), machine_type));
    common(namespace, name).into_iter().chain(machines).collect()
}

fn common(namespace: &str, name: &str) -> Vec<Value> {
    let of_group = |of: &str, kind: &str| template(of, kind, namespace, name, json!({}));
    vec![
        of_group("infrastructure", "SandboxClusterTemplate"),
        of_group("controlplane", "SandboxControlPlaneTemplate"),
        of_group("bootstrap", "SandboxBootstrapConfigTemplate"),
    ]
}

fn machine_template(namespace: &str, name: &str, machine_type: &str) -> Value {
    let spec = json!({"machineType": machine_type});
    template("infrastructure", "SandboxMachineTemplate", namespace, name, spec)
}

fn template(of: &str, kind: &str, namespace: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": group(of), "kind": kind, "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": {"spec": spec}},
    })
}

fn group(group: &str) -> String {
    format!("{group}.cluster.x-k8s.io/v1beta2")
}
