//! The kinds of Cluster API, as far as they are read here. Whatever else they say makes no difference.

use super::condition::ApiCondition;
use crate::names::{CLUSTER_NUMBER_LABEL, MACHINE_TYPE_ANNOTATION, PARTS_ANNOTATION, PROVISIONER_LABEL};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIGroup;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::Request;
use kube::core::{ApiResource, Object};
use portolan_core::provision::Failure;
use portolan_runtime::{CallError, call};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The API group of Cluster API.
pub(crate) const GROUP: &str = "cluster.x-k8s.io";

/// The version whose fields are read and written here.
const VERSION: &str = "v1beta2";

/// On Machines: the Cluster that they belong to.
pub(super) const CLUSTER_NAME_LABEL: &str = "cluster.x-k8s.io/cluster-name";

/// On Machines of the control plane.
const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";

/// On Machines: the entry of `spec.topology.workers.machineDeployments` that they belong to.
const POOL_LABEL: &str = "topology.cluster.x-k8s.io/deployment-name";

/// On Machines: the MachineDeployment that they belong to.
pub(super) const DEPLOYMENT_LABEL: &str = "cluster.x-k8s.io/deployment-name";

/// On Machines: Cluster API deletes them before others. Any value will do; ours says who set it.
pub(super) const DELETE_ANNOTATION: &str = "cluster.x-k8s.io/delete-machine";

/// Portolan's value of [`DELETE_ANNOTATION`].
pub(super) const MARK: &str = "portolan";

/// A Cluster.
pub(super) type Cluster = Object<ClusterSpec, ApiStatus>;
/// A MachineDeployment.
pub(super) type MachineDeployment = Object<DeploymentSpec, ApiStatus>;
/// A Machine.
pub(super) type Machine = Object<MachineSpec, ApiStatus>;
/// A ClusterClass.
pub(super) type ClusterClass = Object<ClassSpec, ApiStatus>;

/// What a Cluster asks for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ClusterSpec {
    topology: Option<Topology>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Topology {
    workers: Workers,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Workers {
    machine_deployments: Vec<MachinePool>,
}

/// An entry of `spec.topology.workers.machineDeployments`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct MachinePool {
    pub(super) name: String,
    pub(super) replicas: Option<u32>,
    metadata: PoolMeta,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct PoolMeta {
    annotations: BTreeMap<String, String>,
}

impl MachinePool {
    /// The machine type that its nodes are of, if Portolan made it.
    pub(super) fn machine_type(&self) -> Option<&str> {
        self.metadata.annotations.get(MACHINE_TYPE_ANNOTATION).map(String::as_str)
    }
}

impl ClusterSpec {
    /// Whether the Cluster is made from a ClusterClass.
    fn has_class(&self) -> bool {
        self.topology.is_some()
    }

    /// The machine pools that the Cluster is asked for, if it is made from a ClusterClass.
    pub(super) fn pools(&self) -> &[MachinePool] {
        self.topology
            .as_ref()
            .map(|topology| topology.workers.machine_deployments.as_slice())
            .unwrap_or_default()
    }
}

/// What a MachineDeployment asks for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct DeploymentSpec {
    cluster_name: String,
    replicas: Option<u32>,
}

/// What a Machine asks for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct MachineSpec {
    cluster_name: String,
}

/// What is found out of a Cluster or a Machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ApiStatus {
    pub(super) conditions: Vec<ApiCondition>,
    node_ref: NodeRef,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct NodeRef {
    name: Option<String>,
}

/// What a ClusterClass offers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ClassSpec {
    pub(super) variables: Vec<Named>,
    workers: ClassWorkers,
}

/// Something with a name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Named {
    pub(super) name: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClassWorkers {
    machine_deployments: Vec<WorkerClass>,
}

/// A class of worker nodes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct WorkerClass {
    pub(super) class: String,
}

impl ClassSpec {
    /// The classes of worker nodes.
    pub(super) fn workers(&self) -> &[WorkerClass] {
        &self.workers.machine_deployments
    }
}

/// The uid of the CloudProvisioner that a Cluster was created for, and which of its clusters it is.
pub(super) fn owner(cluster: &Cluster) -> (Option<&str>, Option<u32>) {
    let label = |name: &str| cluster.metadata.labels.as_ref().and_then(|labels| labels.get(name));
    let number = label(CLUSTER_NUMBER_LABEL).and_then(|number| number.parse().ok());
    (label(PROVISIONER_LABEL).map(String::as_str), number)
}

/// Whether a Cluster refers to parts that were not created yet. Those of a ClusterClass are created by Cluster API.
pub(super) fn is_incomplete(cluster: &Cluster) -> bool {
    let annotations = cluster.metadata.annotations.as_ref();
    !cluster.spec.has_class() && annotations.is_none_or(|all| !all.contains_key(PARTS_ANNOTATION))
}

/// What is kept of a MachineDeployment that Portolan has created.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DeploymentFacts {
    /// The Cluster that it belongs to.
    pub(super) cluster: String,
    /// The machine type that its nodes are of.
    pub(super) machine_type: Option<String>,
    pub(super) replicas: u32,
}

impl DeploymentFacts {
    pub(super) fn of(deployment: &MachineDeployment) -> Self {
        let annotations = deployment.metadata.annotations.as_ref();
        Self {
            cluster: deployment.spec.cluster_name.clone(),
            machine_type: annotations.and_then(|all| all.get(MACHINE_TYPE_ANNOTATION)).cloned(),
            replicas: deployment.spec.replicas.unwrap_or(0),
        }
    }
}

/// What is kept of a Machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MachineFacts {
    /// The Cluster that it belongs to.
    pub(super) cluster: String,
    /// The entry of `spec.topology.workers.machineDeployments` that it belongs to, or without a topology its
    /// MachineDeployment; none for one of the control plane.
    pub(super) pool: Option<String>,
    /// The name of its node.
    pub(super) node: Option<String>,
    /// When it was created.
    pub(super) created_at: Option<Timestamp>,
    /// Since when it has been ready.
    pub(super) ready_since: Option<Timestamp>,
    /// Since when it is known not to be ready.
    pub(super) unready_since: Option<Timestamp>,
    /// Whether it is being deleted.
    pub(super) deleting: bool,
    /// Whether Portolan marked it to be deleted before others.
    pub(super) marked: bool,
    /// Why it cannot be made.
    pub(super) failure: Option<Failure>,
}

impl MachineFacts {
    /// Keeps of a Machine what provisioning needs.
    pub(super) fn of(machine: &Machine) -> Self {
        let metadata = &machine.metadata;
        let label = |name: &str| metadata.labels.as_ref().and_then(|labels| labels.get(name));
        let status = machine.status.clone().unwrap_or_default();
        let mark = metadata.annotations.as_ref().and_then(|all| all.get(DELETE_ANNOTATION));
        Self {
            cluster: label(CLUSTER_NAME_LABEL).cloned().unwrap_or_else(|| machine.spec.cluster_name.clone()),
            pool: label(POOL_LABEL)
                .or(label(DEPLOYMENT_LABEL))
                .filter(|_| label(CONTROL_PLANE_LABEL).is_none())
                .cloned(),
            created_at: metadata.creation_timestamp.as_ref().map(|time| time.0),
            ready_since: ApiCondition::true_since(&status.conditions, "Ready"),
            unready_since: ApiCondition::not_true_since(&status.conditions, "Ready"),
            failure: ApiCondition::failure(
                &status.conditions,
                &["BootstrapConfigReady", "InfrastructureReady"],
            ),
            node: status.node_ref.name.filter(|name| !name.is_empty()),
            deleting: metadata.deletion_timestamp.is_some(),
            marked: mark.is_some_and(|value| value == MARK),
        }
    }
}

/// Whether the hub serves Cluster API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Served {
    /// It was not asked yet.
    #[default]
    Unknown,
    /// It does not, and what is lacking.
    No(String),
    /// It does.
    Yes,
}

/// Asks the hub whether it serves Cluster API.
///
/// # Errors
/// The hub does not answer.
pub(super) async fn discover(hub: &Client) -> Result<Served, CallError> {
    let request = async {
        let request =
            Request::new("/apis").get(GROUP, &Default::default()).map_err(kube::Error::BuildRequest)?;
        hub.request::<APIGroup>(request).await
    };
    let versions: Vec<String> = match call(format!("ask the hub for API group {GROUP}"), request).await {
        Ok(group) => group.versions.into_iter().map(|each| each.version).collect(),
        Err(error) if error.is_not_found() => Vec::new(),
        Err(error) => return Err(error),
    };
    Ok(if versions.iter().any(|version| version == VERSION) {
        Served::Yes
    } else if versions.is_empty() {
        Served::No(format!(
            "the hub does not serve Cluster API ({GROUP}/{VERSION}): install its core controllers of v1.11 or later and an \
             infrastructure provider, for instance by `clusterctl init`"
        ))
    } else {
        Served::No(format!(
            "the hub serves {GROUP} in {}, and Portolan needs {VERSION}: update Cluster API to v1.11 or later",
            versions.join(", ")
        ))
    })
}

/// What there is to say when Cluster API was removed from the hub.
pub(super) fn not_served_any_more() -> String {
    format!(
        "the hub does not serve Cluster API ({GROUP}/{VERSION}) any more: install it again; what it has made in clouds may \
         exist and cost money, and is not known until then"
    )
}

/// A kind of Cluster API.
pub(super) fn resource(kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: GROUP.to_owned(),
        version: VERSION.to_owned(),
        api_version: format!("{GROUP}/{VERSION}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// Clusters.
pub(super) fn clusters() -> ApiResource {
    resource("Cluster", "clusters")
}

/// MachineDeployments.
pub(super) fn machine_deployments() -> ApiResource {
    resource("MachineDeployment", "machinedeployments")
}

/// Machines.
pub(super) fn machines() -> ApiResource {
    resource("Machine", "machines")
}

/// ClusterClasses.
pub(super) fn classes() -> ApiResource {
    resource("ClusterClass", "clusterclasses")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_machine_is_read_by_its_labels_and_conditions() {
        let machine = |status: serde_json::Value| -> MachineFacts {
            let machine: Machine = serde_json::from_value(json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
                "metadata": {
                    "name": "m", "namespace": "cloud",
                    "labels": {CLUSTER_NAME_LABEL: "c", POOL_LABEL: "small"},
                    "annotations": {DELETE_ANNOTATION: "portolan"},
                },
                "spec": {"clusterName": "c", "version": "v1.36.3"}, "status": status,
            }))
            .unwrap();
            MachineFacts::of(&machine)
        };
        let ready = machine(json!({
            "nodeRef": {"name": "n1"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }));
        assert_eq!(
            (ready.cluster.as_str(), ready.pool.as_deref(), ready.node.as_deref()),
            ("c", Some("small"), Some("n1"))
        );
        assert!(ready.marked && ready.ready_since.is_some() && ready.failure.is_none());
        let failed = machine(json!({
            "conditions": [{"type": "InfrastructureReady", "status": "False", "reason": "QuotaExceeded", "message": "8 of 8 cores"}],
        }));
        assert_eq!(failed.failure.unwrap().reason, "QuotaExceeded");
        assert_eq!(failed.ready_since, None);
    }
}
