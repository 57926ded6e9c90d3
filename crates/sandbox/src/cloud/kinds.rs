//! The kinds, labels, annotations and finalizers of Cluster API.

/// The group of Cluster API itself.
pub(super) const CORE: &str = "cluster.x-k8s.io";
/// The version that all kinds are served in.
pub(super) const VERSION: &str = "v1beta2";

/// The group of the kinds that stand for the cloud's own objects.
pub(super) const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
/// The group of the kinds that make a machine a node.
pub(super) const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";
/// The group of the kinds that stand for control planes.
pub(super) const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io";

/// A kind: its group and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub(super) group: &'static str,
    pub(super) name: &'static str,
}

const fn kind(group: &'static str, name: &'static str) -> Kind {
    Kind { group, name }
}

pub(super) const CLUSTER: Kind = kind(CORE, "Cluster");
pub(super) const CLUSTER_CLASS: Kind = kind(CORE, "ClusterClass");
pub(super) const MACHINE_DEPLOYMENT: Kind = kind(CORE, "MachineDeployment");
pub(super) const MACHINE: Kind = kind(CORE, "Machine");

pub(super) const SANDBOX_CLUSTER: Kind = kind(INFRASTRUCTURE, "SandboxCluster");
pub(super) const SANDBOX_MACHINE: Kind = kind(INFRASTRUCTURE, "SandboxMachine");
pub(super) const SANDBOX_CONTROL_PLANE: Kind = kind(CONTROL_PLANE, "SandboxControlPlane");
pub(super) const SANDBOX_BOOTSTRAP: Kind = kind(BOOTSTRAP, "SandboxBootstrapConfig");

pub(super) const SANDBOX_CLUSTER_TEMPLATE: Kind = kind(INFRASTRUCTURE, "SandboxClusterTemplate");
pub(super) const SANDBOX_MACHINE_TEMPLATE: Kind = kind(INFRASTRUCTURE, "SandboxMachineTemplate");
pub(super) const SANDBOX_CONTROL_PLANE_TEMPLATE: Kind = kind(CONTROL_PLANE, "SandboxControlPlaneTemplate");
pub(super) const SANDBOX_BOOTSTRAP_TEMPLATE: Kind = kind(BOOTSTRAP, "SandboxBootstrapConfigTemplate");

/// All kinds that the simulated Cluster API serves.
pub(super) const ALL: [Kind; 12] = [
    CLUSTER,
    CLUSTER_CLASS,
    MACHINE_DEPLOYMENT,
    MACHINE,
    SANDBOX_CLUSTER,
    SANDBOX_MACHINE,
    SANDBOX_CONTROL_PLANE,
    SANDBOX_BOOTSTRAP,
    SANDBOX_CLUSTER_TEMPLATE,
    SANDBOX_MACHINE_TEMPLATE,
    SANDBOX_CONTROL_PLANE_TEMPLATE,
    SANDBOX_BOOTSTRAP_TEMPLATE,
];

impl Kind {
    /// As it stands in `apiVersion`.
    pub(super) fn api_version(self) -> String {
        format!("{}/{VERSION}", self.group)
    }

    /// As it stands in paths.
    pub(super) fn plural(self) -> String {
        // Cluster API computes the plural in the same way, but for its own kind.
        if self == CLUSTER_CLASS {
            "clusterclasses".to_owned()
        } else {
            format!("{}s", self.name.to_lowercase())
        }
    }

    pub(super) fn is_template(self) -> bool {
        self.name.ends_with("Template")
    }
}

pub(super) const CLUSTER_FINALIZER: &str = "cluster.cluster.x-k8s.io";
pub(super) const DEPLOYMENT_FINALIZER: &str = "cluster.x-k8s.io/machinedeployment";
pub(super) const MACHINE_FINALIZER: &str = "machine.cluster.x-k8s.io";

pub(super) const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
pub(super) const DEPLOYMENT_NAME: &str = "cluster.x-k8s.io/deployment-name";
pub(super) const TOPOLOGY_OWNED: &str = "topology.cluster.x-k8s.io/owned";
pub(super) const TOPOLOGY_DEPLOYMENT: &str = "topology.cluster.x-k8s.io/deployment-name";
pub(super) const DELETE_MACHINE: &str = "cluster.x-k8s.io/delete-machine";
pub(super) const EXCLUDE_DRAINING: &str = "machine.cluster.x-k8s.io/exclude-node-draining";
pub(super) const CLONED_FROM: &str = "cluster.x-k8s.io/cloned-from-name";
pub(super) const AUTOSCALER_MIN: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
