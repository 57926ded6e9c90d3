//! The templates that a Cluster is made from where there is no ClusterClass.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::template::PreservedObject;

/// The templates of a cluster and of its machines. Portolan makes copies of them for each cluster, and leaves them as they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterTemplate {
    /// The namespace of all templates, in which the cluster is made too.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// The template of the cluster's infrastructure, such as an OpenStackClusterTemplate.
    pub infrastructure: TemplateRef,
    /// The control plane.
    pub control_plane: ControlPlaneTemplate,
    /// The templates of the worker nodes: one entry for each of machineTypes.
    #[schemars(length(min = 1, max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["machineType"]))]
    pub workers: Vec<WorkerTemplate>,
    /// The network of the cluster, as spec.clusterNetwork of a Cluster. It is kept as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_network: Option<PreservedObject>,
}

/// The templates of a control plane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneTemplate {
    /// The template of the control plane, such as a KubeadmControlPlaneTemplate.
    pub template: TemplateRef,
    /// The template of the control plane's own machines, if it has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<TemplateRef>,
    /// How many machines the control plane has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9))]
    pub replicas: Option<i32>,
}

/// The templates of the worker nodes of one machine type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerTemplate {
    /// The machine type of machineTypes that they are for.
    #[schemars(length(min = 1, max = 253))]
    pub machine_type: String,
    /// The template of a machine, such as an OpenStackMachineTemplate.
    pub infrastructure: TemplateRef,
    /// The template of what makes a machine a node, such as a KubeadmConfigTemplate.
    pub bootstrap: TemplateRef,
}

/// A template of Cluster API, in the version that the hub prefers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateRef {
    /// The API group of the template, such as infrastructure.cluster.x-k8s.io.
    #[schemars(length(min = 1, max = 253), extend("x-kubernetes-validations" = [{
        "rule": "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",
        "message": "must be an API group without a version, such as infrastructure.cluster.x-k8s.io",
    }]))]
    pub api_group: String,
    /// The kind of the template, which ends in Template.
    #[schemars(length(min = 1, max = 63), extend("x-kubernetes-validations" = [{
        "rule": "self.matches('^[A-Z][A-Za-z0-9]*Template$')",
        "message": "must be the kind of a template, such as OpenStackMachineTemplate",
    }]))]
    pub kind: String,
    /// The name of the template.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

impl ClusterTemplate {
    /// The templates of the worker nodes of this machine type.
    #[must_use]
    pub fn worker(&self, machine_type: &str) -> Option<&WorkerTemplate> {
        self.workers.iter().find(|worker| worker.machine_type == machine_type)
    }
}
