//! A ClusterClass of the lab, as a user would write one.

use serde_json::{Value, json};

use super::kinds::Kind;

/// The class of workers.
const WORKERS: &str = "workers";

/// A ClusterClass and its templates, all of the same namespace and name. Its variable `machineType`, which has this default,
/// decides what workers are made of.
pub fn cluster_class(namespace: &str, name: &str, machine_type: &str) -> Vec<Value> {
    let metadata = json!({"name": name, "namespace": namespace});
    let template = |kind: Kind, spec: Value| {
        json!({
            "apiVersion": kind.api_version(), "kind": kind.template(), "metadata": metadata,
            "spec": {"template": {"spec": spec}},
        })
    };
    let reference = |kind: Kind| json!({"templateRef": {"apiVersion": kind.api_version(), "kind": kind.template(), "name": name}});
    let class = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "metadata": metadata,
        "spec": {
            "infrastructure": reference(Kind::Cluster),
            "controlPlane": reference(Kind::ControlPlane),
            "workers": {"machineDeployments": [{
                "class": WORKERS,
                "infrastructure": reference(Kind::Machine),
                "bootstrap": reference(Kind::BootstrapConfig),
            }]},
            "variables": [{
                "name": "machineType", "required": true,
                "schema": {"openAPIV3Schema": {"type": "string", "default": machine_type}},
            }],
            "patches": [{"name": "machineType", "definitions": [{
                "selector": {
                    "apiVersion": Kind::Machine.api_version(), "kind": Kind::Machine.template(),
                    "matchResources": {"machineDeploymentClass": {"names": [WORKERS]}},
                },
                "jsonPatches": [{
                    "op": "replace", "path": "/spec/template/spec/machineType",
                    "valueFrom": {"variable": "machineType"},
                }],
            }]}],
        },
    });
    vec![
        template(Kind::Cluster, json!({})),
        template(Kind::ControlPlane, json!({})),
        template(Kind::Machine, json!({"machineType": machine_type})),
        template(Kind::BootstrapConfig, json!({})),
        class,
    ]
}
