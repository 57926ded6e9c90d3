//! The definitions of the kinds: the fields that are served are described, all others are kept as they are.

use serde_json::{Value, json};

use super::kinds::{ALL, CLUSTER, CLUSTER_CLASS, CORE, Kind, MACHINE, MACHINE_DEPLOYMENT, VERSION};

/// A definition for each kind.
pub(super) fn definitions() -> Vec<Value> {
    ALL.into_iter().map(definition).collect()
}

fn definition(kind: Kind) -> Value {
    let plural = kind.plural();
    let mut version = json!({
        "name": VERSION,
        "served": true,
        "storage": true,
        "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"type": "object"},
                "spec": spec(kind),
                "status": open(json!({})),
            },
        }},
        "additionalPrinterColumns": columns(kind),
    });
    if !kind.is_template() {
        version["subresources"] = json!({"status": {}});
    }
    if kind == MACHINE_DEPLOYMENT {
        version["subresources"]["scale"] = json!({
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        });
    }
    let mut labels = json!({"cluster.x-k8s.io/provider": "sandbox"});
    if kind.group != CORE {
        // The contract, and the version in which the provider keeps it.
        labels["cluster.x-k8s.io/v1beta2"] = json!(VERSION);
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{}", kind.group), "labels": labels},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {
                "plural": plural,
                "singular": kind.name.to_lowercase(),
                "kind": kind.name,
                "listKind": format!("{}List", kind.name),
                "shortNames": short_names(kind),
                "categories": ["cluster-api"],
            },
            "versions": [version],
        },
    })
}

fn short_names(kind: Kind) -> &'static [&'static str] {
    match kind {
        CLUSTER => &["cl"],
        CLUSTER_CLASS => &["cc"],
        MACHINE => &["ma"],
        MACHINE_DEPLOYMENT => &["md"],
        _ => &[],
    }
}

fn columns(kind: Kind) -> Value {
    let column = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
    let condition = |kind: &str| format!(".status.conditions[?(@.type==\"{kind}\")].status");
    let mut columns = match kind {
        CLUSTER => vec![
            column("ClusterClass", ".spec.topology.classRef.name"),
            column("Available", &condition("Available")),
            column("Phase", ".status.phase"),
            column("Version", ".spec.topology.version"),
        ],
        MACHINE_DEPLOYMENT => vec![
            column("Cluster", ".spec.clusterName"),
            column("Available", &condition("Available")),
            column("Desired", ".spec.replicas"),
            column("Current", ".status.replicas"),
            column("Ready", ".status.readyReplicas"),
            column("Phase", ".status.phase"),
        ],
        MACHINE => vec![
            column("Cluster", ".spec.clusterName"),
            column("Node Name", ".status.nodeRef.name"),
            column("Ready", &condition("Ready")),
            column("Phase", ".status.phase"),
        ],
        _ => Vec::new(),
    };
    columns.push(json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}));
    json!(columns)
}

/// An object with these fields and any others.
fn open(properties: Value) -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": properties})
}

fn name() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 253})
}

fn count() -> Value {
    json!({"type": "integer", "format": "int32", "minimum": 0})
}

fn spec(kind: Kind) -> Value {
    match kind {
        CLUSTER => open(json!({"paused": {"type": "boolean"}, "topology": topology()})),
        CLUSTER_CLASS => open(json!({
            "variables": {"type": "array", "items": open(json!({"name": name(), "required": {"type": "boolean"}}))},
            "patches": {"type": "array", "items": open(json!({"name": name()}))},
        })),
        MACHINE_DEPLOYMENT => open(json!({"clusterName": name(), "replicas": count()})),
        MACHINE => open(json!({"clusterName": name(), "providerID": {"type": "string"}})),
        _ => open(json!({})),
    }
}

fn topology() -> Value {
    let variables = json!({
        "type": "array",
        "minItems": 1,
        "items": {
            "type": "object",
            "required": ["name", "value"],
            "properties": {"name": name(), "value": {"x-kubernetes-preserve-unknown-fields": true}},
        },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    });
    let mut pool = open(json!({
        "class": name(),
        "name": {"type": "string", "minLength": 1, "maxLength": 63},
        "replicas": count(),
        "variables": {"type": "object", "minProperties": 1, "properties": {"overrides": variables}},
    }));
    pool["required"] = json!(["class", "name"]);
    let mut class = open(json!({"name": name(), "namespace": name()}));
    class["required"] = json!(["name"]);
    let mut control_plane = open(json!({"replicas": count()}));
    control_plane["minProperties"] = json!(1);
    let mut topology = open(json!({
        "classRef": class,
        "version": {"type": "string", "minLength": 1, "maxLength": 256},
        "controlPlane": control_plane,
        "variables": variables,
        "workers": open(json!({"machineDeployments": {
            "type": "array",
            "minItems": 1,
            "items": pool,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        }})),
    }));
    topology["required"] = json!(["classRef", "version"]);
    topology
}
