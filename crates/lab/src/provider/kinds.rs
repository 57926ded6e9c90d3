//! The kinds of the lab's infrastructure provider, and their definitions.
//!
//! They are in the groups for which the roles of Cluster API allow everything, so that they need no roles of their own.

use kube::api::{Api, ApiResource, DynamicObject};
use kube::{Client, core::GroupVersionKind};
use serde_json::{Value, json};

/// The version of all kinds.
pub(super) const VERSION: &str = "v1";

/// Says on a definition which of its versions follow which contract of Cluster API.
const CONTRACT: &str = "cluster.x-k8s.io/v1beta2";

/// A kind of the provider; each has a template too.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// The network of a cluster, which is the lab's.
    Cluster,
    /// A control plane: a node that runs no pods.
    ControlPlane,
    /// What a machine needs to join a cluster. The provider knows it by itself.
    BootstrapConfig,
    /// A machine: a node.
    Machine,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Cluster, Kind::ControlPlane, Kind::BootstrapConfig, Kind::Machine];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Cluster => "LabCluster",
            Kind::ControlPlane => "LabControlPlane",
            Kind::BootstrapConfig => "LabBootstrapConfig",
            Kind::Machine => "LabMachine",
        }
    }

    fn group(self) -> &'static str {
        match self {
            Kind::Cluster | Kind::Machine => "infrastructure.cluster.x-k8s.io",
            Kind::ControlPlane => "controlplane.cluster.x-k8s.io",
            Kind::BootstrapConfig => "bootstrap.cluster.x-k8s.io",
        }
    }

    /// The name of its template.
    pub(super) fn template(self) -> String {
        format!("{}Template", self.name())
    }

    /// Group and version.
    pub(super) fn api_version(self) -> String {
        format!("{}/{VERSION}", self.group())
    }

    /// The objects of this kind in all namespaces.
    pub(super) fn everywhere(self, client: &Client) -> Api<DynamicObject> {
        Api::all_with(client.clone(), &self.resource())
    }

    /// The objects of this kind in one namespace.
    pub(super) fn within(self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(client.clone(), namespace, &self.resource())
    }

    fn resource(self) -> ApiResource {
        ApiResource::from_gvk(&GroupVersionKind::gvk(self.group(), VERSION, self.name()))
    }
}

/// The definitions of all kinds and their templates, as one List.
pub(super) fn definitions() -> Value {
    let both = |kind: Kind| [definition(kind, kind.name(), true), definition(kind, &kind.template(), false)];
    json!({"apiVersion": "v1", "kind": "List", "items": Kind::ALL.into_iter().flat_map(both).collect::<Vec<_>>()})
}

fn definition(kind: Kind, name: &str, with_status: bool) -> Value {
    // Cluster API computes the name of a definition in just this way.
    let singular = name.to_lowercase();
    let plural = format!("{singular}s");
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut version = json!({
        "name": VERSION, "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}},
    });
    if with_status {
        version["subresources"] = json!({"status": {}});
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{}", kind.group()), "labels": {CONTRACT: VERSION}},
        "spec": {
            "group": kind.group(), "scope": "Namespaced",
            "names": {"kind": name, "listKind": format!("{name}List"), "plural": plural, "singular": singular},
            "versions": [version],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_have_the_names_and_labels_that_cluster_api_looks_for() {
        let all = definitions();
        let items = all["items"].as_array().unwrap();
        assert_eq!(items.len(), 8);
        assert_eq!(items[7]["metadata"]["name"], "labmachinetemplates.infrastructure.cluster.x-k8s.io");
        for item in items {
            assert_eq!(item["metadata"]["labels"][CONTRACT], VERSION, "{item}");
        }
    }
}
