//! The objects of a cluster that is made from templates: a Cluster that refers to its parts, and a MachineDeployment for each
//! machine type.
//!
//! Cluster API takes ownership of the templates that a MachineDeployment or a control plane refers to, and deletes them with
//! the Cluster. So each cluster has copies of its own, which it owns: what a user has written is only read.

use super::cluster_api::{CLUSTER_NAME_LABEL, DEPLOYMENT_LABEL, machine_deployments};
use super::topology::{empty_cluster, pool_name};
use crate::names::{MACHINE_TYPE_ANNOTATION, PROVISIONER_LABEL};
use portolan_api::CloudProvisioner;
use portolan_api::cloudprovisioner::{ClusterTemplate, TemplateRef, WorkerTemplate};
use portolan_core::provision::Failure;
use serde_json::{Value, json};

/// What the kinds of templates end in; without it, it is the kind of the object that is made from the template.
const SUFFIX: &str = "Template";

/// A Cluster of Cluster API that exists, and to which its parts belong.
pub(super) struct Owner<'a> {
    pub(super) provisioner: &'a CloudProvisioner,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
}

/// The Cluster. The parts that it refers to bear its own name.
pub(super) fn cluster(
    provisioner: &CloudProvisioner,
    template: &ClusterTemplate,
    (name, number): (&str, u32),
) -> Value {
    let mut cluster = empty_cluster(provisioner, (name, number));
    cluster["spec"] = json!({
        "infrastructureRef": made_from(&template.infrastructure, name),
        "controlPlaneRef": made_from(&template.control_plane.template, name),
    });
    if let Some(network) = &template.cluster_network {
        cluster["spec"]["clusterNetwork"] = network.0.clone();
    }
    cluster
}

impl Owner<'_> {
    /// An object without `apiVersion` and `kind` that belongs to the Cluster and is deleted with it.
    fn owned(&self, name: &str, metadata: Option<&Value>, spec: Value) -> Value {
        let part = |field: &str| metadata.and_then(|metadata| metadata.get(field)).cloned();
        let mut labels = part("labels").unwrap_or_else(|| json!({}));
        labels[CLUSTER_NAME_LABEL] = json!(self.name);
        labels[PROVISIONER_LABEL] = json!(self.provisioner.metadata.uid);
        let kind = super::cluster_api::clusters();
        let mut object = json!({
            "metadata": {
                "name": name, "namespace": self.namespace, "labels": labels,
                "ownerReferences": [{
                    "apiVersion": kind.api_version, "kind": kind.kind, "name": self.name, "uid": self.uid,
                }],
            },
            "spec": spec,
        });
        if let Some(annotations) = part("annotations") {
            object["metadata"]["annotations"] = annotations;
        }
        object
    }

    /// What a template describes, such as the infrastructure of the cluster.
    ///
    /// # Errors
    /// The template describes nothing.
    pub(super) fn instance(&self, reference: &TemplateRef, template: &Value) -> Result<Value, Failure> {
        let described = template.pointer("/spec/template").filter(|described| described.is_object());
        let described = described.ok_or_else(|| self.describes_nothing(reference))?;
        let spec = described.get("spec").cloned().unwrap_or_else(|| json!({}));
        Ok(self.owned(self.name, described.get("metadata"), spec))
    }

    /// A copy of a template.
    ///
    /// # Errors
    /// The template describes nothing.
    pub(super) fn copy(
        &self,
        name: &str,
        reference: &TemplateRef,
        template: &Value,
    ) -> Result<Value, Failure> {
        let spec = template.get("spec").filter(|spec| spec["template"].is_object());
        let spec = spec.ok_or_else(|| self.describes_nothing(reference))?;
        Ok(self.owned(name, None, spec.clone()))
    }

    /// The control plane: what its template describes, of this version, with machines of its own if it is to have some.
    ///
    /// # Errors
    /// The template describes nothing.
    pub(super) fn control_plane(
        &self,
        template: &ClusterTemplate,
        described: &Value,
        version: &str,
    ) -> Result<Value, Failure> {
        let wanted = &template.control_plane;
        let mut object = self.instance(&wanted.template, described)?;
        object["spec"]["version"] = json!(version);
        if let Some(replicas) = wanted.replicas {
            object["spec"]["replicas"] = json!(replicas);
        }
        if let Some(machines) = &wanted.machines {
            let copy = copied(machines, &self.control_plane_machines());
            object["spec"]["machineTemplate"]["spec"]["infrastructureRef"] = copy;
        }
        Ok(object)
    }

    /// The name of the copy of the template of the control plane's machines.
    pub(super) fn control_plane_machines(&self) -> String {
        format!("{}-control-plane", self.name)
    }

    /// The name of the MachineDeployment of a machine type, and of the copies of its templates.
    pub(super) fn pool(&self, machine_type: &str) -> String {
        deployment_name(self.name, machine_type)
    }

    /// The MachineDeployment of a machine type.
    pub(super) fn deployment(&self, worker: &WorkerTemplate, version: &str, replicas: u32) -> Value {
        let name = self.pool(&worker.machine_type);
        let labels = json!({ CLUSTER_NAME_LABEL: self.name, DEPLOYMENT_LABEL: name });
        let spec = json!({
            "clusterName": self.name,
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "rollout": { "strategy": {
                "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 },
            }},
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "clusterName": self.name,
                    "version": version,
                    "bootstrap": { "configRef": copied(&worker.bootstrap, &name) },
                    "infrastructureRef": copied(&worker.infrastructure, &name),
                },
            },
        });
        let kind = machine_deployments();
        let annotations = json!({ "annotations": { MACHINE_TYPE_ANNOTATION: worker.machine_type } });
        let mut object = self.owned(&name, Some(&annotations), spec);
        object["apiVersion"] = json!(kind.api_version);
        object["kind"] = json!(kind.kind);
        object
    }

    fn describes_nothing(&self, reference: &TemplateRef) -> Failure {
        lacking(format!(
            "{} {}/{} has no spec.template, so that nothing can be made from it: write it there",
            reference.kind, self.namespace, reference.name
        ))
    }
}

/// The name of the MachineDeployment of a machine type.
pub(super) fn deployment_name(cluster: &str, machine_type: &str) -> String {
    format!("{cluster}-{}", pool_name(machine_type))
}

/// The templates of a machine type.
///
/// # Errors
/// There are none.
pub(super) fn worker<'a>(
    template: &'a ClusterTemplate,
    machine_type: &str,
) -> Result<&'a WorkerTemplate, Failure> {
    template.worker(machine_type).ok_or_else(|| {
        lacking(format!(
            "spec.clusterTemplate.workers has no entry with machineType {machine_type}: add it with its templates"
        ))
    })
}

/// The kind that is made from templates of a kind.
pub(super) fn kind_of(template: &TemplateRef) -> &str {
    template.kind.strip_suffix(SUFFIX).unwrap_or(&template.kind)
}

/// A reference to what is made from a template.
fn made_from(template: &TemplateRef, name: &str) -> Value {
    json!({ "apiGroup": template.api_group, "kind": kind_of(template), "name": name })
}

/// A reference to the copy of a template.
fn copied(template: &TemplateRef, name: &str) -> Value {
    json!({ "apiGroup": template.api_group, "kind": template.kind, "name": name })
}

fn lacking(message: String) -> Failure {
    Failure { reason: "InvalidClusterTemplate".to_owned(), message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::CLUSTER_NUMBER_LABEL;

    const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

    fn provisioner() -> CloudProvisioner {
        let reference = |kind: &str| json!({"apiGroup": INFRASTRUCTURE, "kind": kind, "name": "mine"});
        serde_json::from_value(json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "CloudProvisioner",
            "metadata": {"name": "cp1", "uid": "0b1c"},
            "spec": {"cloudClusterName": "cloud1", "cloudProvider": "OpenStack", "clusterTemplate": {
                "namespace": "clouds", "infrastructure": reference("OpenStackClusterTemplate"),
                "controlPlane": {
                    "template": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlaneTemplate", "name": "mine"},
                    "machines": reference("OpenStackMachineTemplate"), "replicas": 3,
                },
                "workers": [{
                    "machineType": "m1.large", "infrastructure": reference("OpenStackMachineTemplate"),
                    "bootstrap": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfigTemplate", "name": "worker"},
                }],
                "clusterNetwork": {"pods": {"cidrBlocks": ["10.0.0.0/16"]}},
            }},
        }))
        .unwrap()
    }

    fn owner(provisioner: &CloudProvisioner) -> (Owner<'_>, &ClusterTemplate) {
        let owner = Owner { provisioner, namespace: "clouds", name: "cloud1-ab", uid: "c1" };
        (owner, provisioner.spec.cluster_template.as_ref().unwrap())
    }

    #[test]
    fn a_cluster_refers_to_what_is_made_from_the_templates_under_its_own_name() {
        let provisioner = provisioner();
        let (_, template) = owner(&provisioner);
        let made = cluster(&provisioner, template, ("cloud1-ab", 3));
        assert_eq!(made["metadata"]["namespace"], "clouds");
        assert_eq!(made["metadata"]["labels"], json!({PROVISIONER_LABEL: "0b1c", CLUSTER_NUMBER_LABEL: "3"}));
        assert_eq!(
            made["spec"],
            json!({
                "infrastructureRef": {"apiGroup": INFRASTRUCTURE, "kind": "OpenStackCluster", "name": "cloud1-ab"},
                "controlPlaneRef": {
                    "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "cloud1-ab",
                },
                "clusterNetwork": {"pods": {"cidrBlocks": ["10.0.0.0/16"]}},
            })
        );
    }

    #[test]
    fn a_control_plane_has_the_version_and_the_machines_that_are_asked_for() {
        let provisioner = provisioner();
        let (owner, template) = owner(&provisioner);
        let described = json!({"spec": {"template": {
            "metadata": {"labels": {"team": "a"}},
            "spec": {"version": "v1.0.0", "machineTemplate": {"spec": {"deletion": {}}}, "kubeadmConfigSpec": {"x": 1}},
        }}});
        let made = owner.control_plane(template, &described, "v1.36.3").unwrap();
        assert_eq!((&made["spec"]["version"], &made["spec"]["replicas"]), (&json!("v1.36.3"), &json!(3)));
        assert_eq!(made["spec"]["kubeadmConfigSpec"], json!({"x": 1}));
        let machines = &made["spec"]["machineTemplate"]["spec"];
        assert_eq!(machines["infrastructureRef"]["name"], "cloud1-ab-control-plane");
        assert_eq!(machines["deletion"], json!({}), "what the template says stays");
        assert_eq!(made["metadata"]["labels"]["team"], "a");
        assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], "c1", "it goes with the Cluster");
    }

    #[test]
    fn a_machine_deployment_refers_to_copies_that_belong_to_the_cluster() {
        let provisioner = provisioner();
        let (owner, template) = owner(&provisioner);
        let worker = worker(template, "m1.large").unwrap();
        let made = owner.deployment(worker, "v1.36.3", 2);
        let name = made["metadata"]["name"].as_str().unwrap();
        assert!(name.starts_with("cloud1-ab-m1-large-"), "{name}");
        assert_eq!(made["metadata"]["annotations"][MACHINE_TYPE_ANNOTATION], "m1.large");
        assert_eq!(made["spec"]["selector"]["matchLabels"], made["spec"]["template"]["metadata"]["labels"]);
        let spec = &made["spec"]["template"]["spec"];
        assert_eq!(
            (&spec["infrastructureRef"]["kind"], &spec["infrastructureRef"]["name"]),
            (&json!("OpenStackMachineTemplate"), &json!(name))
        );
        assert_eq!(spec["bootstrap"]["configRef"]["name"], json!(name));
        let template = json!({"metadata": {"name": "mine", "uid": "t1"}, "spec": {"template": {"spec": {"flavor": "large"}}}});
        let copy = owner.copy(name, &worker.infrastructure, &template).unwrap();
        assert_eq!((&copy["metadata"]["name"], &copy["spec"]), (&json!(name), &template["spec"]));
        assert_eq!(copy["metadata"]["ownerReferences"][0]["name"], "cloud1-ab");
    }

    #[test]
    fn what_the_templates_lack_is_named() {
        let provisioner = provisioner();
        let (owner, template) = owner(&provisioner);
        let error = owner.instance(&template.infrastructure, &json!({"spec": {}})).unwrap_err();
        assert!(
            error.message.contains("OpenStackClusterTemplate clouds/mine has no spec.template"),
            "{}",
            error.message
        );
        let error = worker(template, "small").unwrap_err();
        assert!(error.message.contains("no entry with machineType small"), "{}", error.message);
    }
}
