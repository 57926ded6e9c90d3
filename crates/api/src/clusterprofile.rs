//! ClusterProfile of SIG Multicluster: how the members of a fleet are told to other programs. Group, names and fields are
//! those of `multicluster.x-k8s.io/v1alpha1`; the definition here is for hubs that do not have it yet.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

/// The API version of a ClusterProfile.
pub const API_VERSION: &str = "multicluster.x-k8s.io/v1alpha1";

/// The condition that says whether a cluster's API server is well.
pub const CONTROL_PLANE_HEALTHY: &str = "ControlPlaneHealthy";

/// The label by which the profiles of one manager are found.
pub const MANAGER_LABEL: &str = "x-k8s.io/cluster-manager";

/// The property that tells who a cluster is.
pub const CLUSTER_ID: &str = "clusterset.k8s.io/cluster-id";

/// The definitions of other projects' kinds that Portolan serves. Where a hub has one already, it is left alone.
///
/// # Errors
/// The definition is not one; a test holds it against the type.
pub fn upstream_crds() -> Result<Vec<CustomResourceDefinition>, serde_json::Error> {
    Ok(vec![serde_json::from_value(definition())?])
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "clusterprofiles.multicluster.x-k8s.io"},
        "spec": {
            "group": "multicluster.x-k8s.io",
            "names": {
                "kind": "ClusterProfile",
                "listKind": "ClusterProfileList",
                "plural": "clusterprofiles",
                "singular": "clusterprofile",
            },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "description": "One cluster of a fleet, as its manager tells it to other programs.",
                    "type": "object",
                    "required": ["spec"],
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "spec": spec(),
                        "status": status(),
                    },
                }},
            }],
        },
    })
}

fn spec() -> Value {
    json!({
        "description": "Who the cluster is, and who manages it.",
        "type": "object",
        "required": ["clusterManager"],
        "properties": {
            "displayName": {"description": "The name to be shown to people.", "type": "string"},
            "clusterManager": {
                "description": "The manager that the profile belongs to.",
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"description": "The name of the manager.", "type": "string"}},
                "x-kubernetes-validations": [
                    {"rule": "self == oldSelf", "message": "ClusterManager is immutable"},
                ],
            },
        },
    })
}

fn status() -> Value {
    let access = |description: &str| {
        json!({
            "description": description,
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"description": "The name of the way, as its users configure it.", "type": "string"},
                    "cluster": {
                        "description": "The cluster entry of a kubeconfig.",
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": true,
                    },
                },
            },
        })
    };
    json!({
        "description": "What the manager found out about the cluster.",
        "type": "object",
        "properties": {
            "conditions": {
                "description": "What was found out, such as ControlPlaneHealthy.",
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["lastTransitionTime", "message", "reason", "status", "type"],
                    "properties": {
                        "type": {"type": "string", "maxLength": 316},
                        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                        "reason": {"type": "string", "minLength": 1, "maxLength": 1024},
                        "message": {"type": "string", "maxLength": 32768},
                        "lastTransitionTime": {"type": "string", "format": "date-time"},
                        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
                    },
                },
            },
            "version": {
                "description": "The versions of what the cluster runs.",
                "type": "object",
                "properties": {
                    "kubernetes": {"description": "The version of Kubernetes.", "type": "string"},
                },
            },
            "properties": {
                "description": "Named facts about the cluster.",
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name", "value"],
                    "properties": {
                        "name": {"type": "string", "minLength": 1, "maxLength": 253},
                        "value": {"type": "string", "minLength": 1, "maxLength": 1024},
                        "lastObservedTime": {"type": "string", "format": "date-time"},
                    },
                },
            },
            "accessProviders": access("Ways to reach the cluster."),
            "credentialProviders": access("Ways to reach the cluster, by their former name."),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_one() {
        let crds = upstream_crds().unwrap();
        assert_eq!(crds[0].metadata.name.as_deref(), Some("clusterprofiles.multicluster.x-k8s.io"));
        assert!(crds[0].spec.versions[0].schema.is_some());
    }
}
