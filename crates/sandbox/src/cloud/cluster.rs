//! The life of a Cluster: its network, its control plane and its kubeconfig are made, and removed in the end.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use http::Method;
use portolan_runtime::CallError;
use serde_json::{Value, json};

use super::access::{EXISTS, NOT_FOUND, Objects, is_refused, unless};
use super::cluster_status::{ClusterView, cluster_status};
use super::conditions::{Conditions, Verdict, no, yes};
use super::config::CloudFailure;
use super::json::{deleting, name, namespace, owner_reference, text};
use super::kinds::{
    CLUSTER, CLUSTER_FINALIZER, CLUSTER_NAME, MACHINE, MACHINE_DEPLOYMENT, SANDBOX_CLUSTER,
    SANDBOX_CONTROL_PLANE,
};
use super::provider::Progress;
use super::run::{Controllers, control_plane_of, key};
use crate::world::ClusterConfig;

/// The port of API servers, as endpoints tell it.
const PORT: u16 = 6443;

impl Controllers {
    /// Brings a Cluster closer to what it should be.
    pub(super) async fn cluster(&mut self, cluster: &Value, objects: &Objects) -> Result<(), CallError> {
        if deleting(cluster) {
            return self.delete_cluster(cluster, objects).await;
        }
        self.access.set_finalizer(CLUSTER, cluster, CLUSTER_FINALIZER, true).await?;
        let topology = match cluster.pointer("/spec/topology") {
            Some(_) => Some(self.build(cluster, objects).await?),
            None => None,
        };
        self.make(cluster, objects).await?;
        self.show(cluster, objects, topology, None).await
    }

    /// Makes the cluster in the cloud.
    async fn make(&mut self, cluster: &Value, objects: &Objects) -> Result<(), CallError> {
        let (space, named) = (namespace(cluster), name(cluster));
        let Some(infrastructure) = objects.referenced(space, cluster.pointer("/spec/infrastructureRef"))
        else {
            return Ok(());
        };
        let taken = self.world.cluster(named).is_some() && !self.booted.contains(&key(cluster));
        let now = self.now();
        let progress = self.provider().infrastructure((space, named), taken, now);
        if progress == Progress::Done
            && let Some(control_plane) = control_plane_of(cluster, objects)
        {
            self.make_control_plane(cluster, control_plane).await?;
        }
        let ready = progress == Progress::Done;
        if ready && infrastructure.pointer("/spec/controlPlaneEndpoint").is_none() {
            let endpoint = json!({"spec": {"controlPlaneEndpoint": {"host": named, "port": PORT}}});
            self.access.patch(SANDBOX_CLUSTER, infrastructure, &endpoint).await?;
        }
        if let Some(endpoint) = infrastructure.pointer("/spec/controlPlaneEndpoint")
            && cluster.pointer("/spec/controlPlaneEndpoint") != Some(endpoint)
        {
            let endpoint = json!({"spec": {"controlPlaneEndpoint": endpoint}});
            self.access.patch(CLUSTER, cluster, &endpoint).await?;
        }
        let status = provider_status(infrastructure, SANDBOX_CLUSTER.name, &progress, &self.time());
        self.access.set_status(SANDBOX_CLUSTER, infrastructure, &status).await
    }

    /// Boots the control plane. Its kubeconfig is there before its API server answers, as it is with real providers.
    async fn make_control_plane(&mut self, cluster: &Value, control_plane: &Value) -> Result<(), CallError> {
        let (space, named) = (namespace(cluster), name(cluster));
        let now = self.now();
        let progress = self.provider().control_plane((space, named), now);
        if self.booted.insert(key(cluster)) {
            let template = self.provider().config.clusters.clone();
            self.world.add_cluster(ClusterConfig { name: named.to_owned(), nodes: Vec::new(), ..template });
            self.world.isolate(named);
        }
        self.write_kubeconfig(cluster, control_plane).await?;
        let initialized = progress == Progress::Done;
        if initialized && !self.workloads.contains_key(&key(cluster)) {
            self.world.rejoin(named);
            self.workloads.insert(key(cluster), Default::default());
        }
        let mut conditions = Conditions::of(control_plane, &self.time());
        let available = if initialized {
            yes("Available")
        } else {
            let field = "status.initialization.controlPlaneInitialized";
            no("NotAvailable", format!("{} {field} is false", SANDBOX_CONTROL_PLANE.name))
        };
        conditions.set("Available", &available);
        let mut status = json!({
            "conditions": conditions.into_value(),
            "externalManagedControlPlane": true,
            "initialization": {"controlPlaneInitialized": initialized},
        });
        if initialized {
            status["version"] = json!(text(control_plane, "/spec/version"));
        }
        self.access.set_status(SANDBOX_CONTROL_PLANE, control_plane, &status).await
    }

    async fn write_kubeconfig(&self, cluster: &Value, control_plane: &Value) -> Result<(), CallError> {
        let secrets = format!("/api/v1/namespaces/{}/secrets", namespace(cluster));
        let secret = format!("{}-kubeconfig", name(cluster));
        let found = self.access.send(Method::GET, &format!("{secrets}/{secret}"), None).await;
        if !found.as_ref().is_err_and(|error| is_refused(error, NOT_FOUND)) {
            return found.map(|_| ());
        }
        let made = self.world.cluster(name(cluster)).map(|made| made.kubeconfig());
        let kubeconfig = match made {
            Some(Ok(kubeconfig)) => kubeconfig.to_string(),
            Some(Err(error)) => {
                self.note(&format!("kubeconfig of {}: {error}", name(cluster)));
                return Ok(());
            }
            None => return Ok(()),
        };
        let kind = SANDBOX_CONTROL_PLANE;
        let object = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "cluster.x-k8s.io/secret",
            "metadata": {
                "name": secret,
                "labels": {CLUSTER_NAME: name(cluster)},
                "ownerReferences": [owner_reference(&kind.api_version(), kind.name, control_plane, true)],
            },
            "data": {"value": BASE64.encode(kubeconfig)},
        });
        unless(self.access.send(Method::POST, &secrets, Some(&object)).await, EXISTS)
    }

    /// Deletes what a Cluster is made of, one part after the other, and then itself.
    async fn delete_cluster(&mut self, cluster: &Value, objects: &Objects) -> Result<(), CallError> {
        let Some(deleting) = self.remove_parts(cluster, objects).await? else {
            self.note(&format!("Cluster {}/{} is removed", namespace(cluster), name(cluster)));
            return self.access.set_finalizer(CLUSTER, cluster, CLUSTER_FINALIZER, false).await;
        };
        let topology = cluster.pointer("/spec/topology").map(|_| no("Deleting", ""));
        self.show(cluster, objects, topology, Some(deleting)).await
    }

    /// Removes the next part of a Cluster; answers what is waited for, and nothing when nothing is left.
    async fn remove_parts(
        &mut self,
        cluster: &Value,
        objects: &Objects,
    ) -> Result<Option<Verdict>, CallError> {
        let id = (namespace(cluster), name(cluster));
        let deployments: Vec<&Value> = objects.of_cluster(MACHINE_DEPLOYMENT, cluster).collect();
        let machines: Vec<&Value> = objects.of_cluster(MACHINE, cluster).collect();
        if !deployments.is_empty() || !machines.is_empty() {
            for deployment in &deployments {
                self.access.delete(MACHINE_DEPLOYMENT, deployment).await?;
            }
            let names =
                |objects: &[&Value]| objects.iter().map(|object| name(object)).collect::<Vec<_>>().join(", ");
            let message =
                format!("* MachineDeployments: {}\n* Machines: {}", names(&deployments), names(&machines));
            return Ok(Some(yes("WaitingForWorkersDeletion").with(message)));
        }
        let now = self.now();
        self.provider().remove_control_plane(id, now);
        self.workloads.remove(&key(cluster));
        if self.booted.remove(&key(cluster)) {
            self.world.remove_cluster(id.1);
        }
        if let Some(control_plane) = control_plane_of(cluster, objects) {
            self.access.delete(SANDBOX_CONTROL_PLANE, control_plane).await?;
            let message = format!("* SandboxControlPlane: {}", name(control_plane));
            return Ok(Some(yes("WaitingForControlPlaneDeletion").with(message)));
        }
        self.provider().remove_infrastructure(id);
        if let Some(infrastructure) = objects.referenced(id.0, cluster.pointer("/spec/infrastructureRef")) {
            self.access.delete(SANDBOX_CLUSTER, infrastructure).await?;
            let message = format!("* SandboxCluster: {}", name(infrastructure));
            return Ok(Some(yes("WaitingForInfrastructureDeletion").with(message)));
        }
        Ok(None)
    }

    /// Writes the status of a Cluster.
    async fn show(
        &self,
        cluster: &Value,
        objects: &Objects,
        topology: Option<Verdict>,
        deleting: Option<Verdict>,
    ) -> Result<(), CallError> {
        let view = ClusterView {
            cluster,
            infrastructure: objects
                .referenced(namespace(cluster), cluster.pointer("/spec/infrastructureRef")),
            control_plane: control_plane_of(cluster, objects),
            deployments: objects.of_cluster(MACHINE_DEPLOYMENT, cluster).collect(),
            machines: objects.of_cluster(MACHINE, cluster).collect(),
            connection: self.workloads.get(&key(cluster)).map(|workload| workload.verdict(self.now())),
            topology,
            deleting,
        };
        self.access.set_status(CLUSTER, cluster, &cluster_status(&view, &self.time())).await
    }
}

/// The status of an object that stands for something in the cloud.
pub(super) fn provider_status(object: &Value, kind: &str, progress: &Progress, time: &Value) -> Value {
    let mut conditions = Conditions::of(object, time);
    let provisioned = matches!(progress, Progress::Provisioned | Progress::Done);
    let ready = match progress {
        Progress::Refused(CloudFailure { reason, message }) => no(reason, message),
        Progress::Pending => no("NotReady", format!("{kind} status.initialization.provisioned is false")),
        Progress::Provisioned | Progress::Done => yes("Ready"),
    };
    conditions.set("Ready", &ready);
    json!({"conditions": conditions.into_value(), "initialization": {"provisioned": provisioned}})
}
