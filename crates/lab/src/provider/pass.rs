//! What the provider does for its objects, one after the other, again and again.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::grounds::Grounds;
use super::kinds::Kind;
use crate::state::MachineSize;

/// On all objects of a Cluster.
const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
/// On what has to be removed from the lab before its object goes.
const FINALIZER: &str = "lab.portolan.dev/running";
const FIELD_MANAGER: &str = "portolan-lab";
const PAUSE: Duration = Duration::from_millis(250);
const API_SERVER_PORT: u16 = 6443;

/// The provider.
pub(super) struct Provider {
    client: Client,
    grounds: Grounds,
    machine_types: BTreeMap<String, MachineSize>,
    /// The only version of Kubernetes that the lab has.
    version: String,
    /// Uids of LabControlPlanes, by namespace and name of their Cluster.
    control_planes: BTreeMap<(String, String), String>,
}

impl Provider {
    pub(super) fn new(
        client: Client,
        grounds: Grounds,
        machine_types: BTreeMap<String, MachineSize>,
        version: String,
    ) -> Self {
        Self { client, grounds, machine_types, version, control_planes: BTreeMap::new() }
    }

    /// Works until it is dropped.
    pub(super) async fn run(mut self) {
        loop {
            for kind in [Kind::ControlPlane, Kind::Cluster, Kind::BootstrapConfig, Kind::Machine] {
                if let Err(error) = self.look_at(kind).await {
                    eprintln!("lab: cannot see the objects {}: {error:#}", kind.name());
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn look_at(&mut self, kind: Kind) -> Result<()> {
        for object in kind.everywhere(&self.client).list(&ListParams::default()).await?.items {
            let done = match kind {
                Kind::ControlPlane => self.control_plane(&object).await,
                Kind::Cluster => self.cluster(&object).await,
                Kind::BootstrapConfig => self.bootstrap_config(&object).await,
                Kind::Machine => self.machine(&object).await,
            };
            if let Err(error) = done
                && !has_changed(&error)
            {
                eprintln!("lab: {} {}: {error:#}", kind.name(), object.name_any());
            }
        }
        Ok(())
    }

    async fn control_plane(&mut self, object: &DynamicObject) -> Result<()> {
        let (kind, uid) = (Kind::ControlPlane, object.uid().unwrap_or_default());
        if object.metadata.deletion_timestamp.is_some() {
            self.grounds.remove_cluster(&uid).await?;
            return self.set_finalizer(kind, object, false).await;
        }
        let Some(name) = cluster_name(object) else { return Ok(()) };
        let asked = object.data["spec"]["version"].as_str().unwrap_or_default();
        ensure!(asked == self.version, "the lab has Kubernetes {}, not {asked:?}", self.version);
        self.control_planes.insert((namespace(object), name.clone()), uid.clone());
        self.set_finalizer(kind, object, true).await?;
        if self.grounds.cluster(&uid).is_none() {
            let made = self.grounds.add_cluster(&uid).await;
            self.report_failure(kind, object, "Available", made).await?;
        }
        if object.data.pointer("/status/initialization/controlPlaneInitialized") == Some(&json!(true)) {
            return Ok(());
        }
        self.publish_kubeconfig(object, &name, &uid).await?;
        let status = json!({
            "initialization": {"controlPlaneInitialized": true},
            "version": self.version,
            // Without Machines of its own; else machines were not drained.
            "externalManagedControlPlane": true,
            "conditions": null,
        });
        self.set_status(kind, object, status).await
    }

    /// Writes the kubeconfig to where Cluster API and its users look for it.
    async fn publish_kubeconfig(&self, object: &DynamicObject, cluster: &str, uid: &str) -> Result<()> {
        let made = self.grounds.cluster(uid).context("the cluster does not run")?;
        let path = made.kubeconfig_path();
        let kubeconfig = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = format!("{cluster}-kubeconfig");
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
            "metadata": {
                "name": name, "namespace": namespace(object), "labels": {CLUSTER_NAME: cluster},
                "ownerReferences": [{
                    "apiVersion": Kind::ControlPlane.api_version(), "kind": Kind::ControlPlane.name(),
                    "name": object.name_any(), "uid": uid, "controller": true,
                }],
            },
            "data": {"value": STANDARD.encode(kubeconfig)},
        });
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &namespace(object));
        let params = PatchParams::apply(FIELD_MANAGER).force();
        secrets.patch(&name, &params, &Patch::Apply(&secret)).await?;
        Ok(())
    }

    /// The network of a cluster is there once its control plane has an address: Cluster API wants both together.
    async fn cluster(&mut self, object: &DynamicObject) -> Result<()> {
        if is_provisioned(object) || object.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let Some(made) = self.control_plane_of(object).and_then(|uid| self.grounds.cluster(uid)) else {
            return Ok(());
        };
        let endpoint = json!({"host": made.control_plane().address(), "port": API_SERVER_PORT});
        self.patch(Kind::Cluster, object, json!({"spec": {"controlPlaneEndpoint": endpoint}})).await?;
        self.set_status(Kind::Cluster, object, json!({"initialization": {"provisioned": true}})).await
    }

    /// The provider gives machines what they need by itself: nobody reads the Secret.
    async fn bootstrap_config(&self, object: &DynamicObject) -> Result<()> {
        if object.data.pointer("/status/dataSecretName").is_some() {
            return Ok(());
        }
        let status =
            json!({"dataSecretName": object.name_any(), "initialization": {"dataSecretCreated": true}});
        self.set_status(Kind::BootstrapConfig, object, status).await
    }

    async fn machine(&mut self, object: &DynamicObject) -> Result<()> {
        let (kind, uid) = (Kind::Machine, object.uid().unwrap_or_default());
        if object.metadata.deletion_timestamp.is_some() {
            self.grounds.remove_node(&uid).await?;
            return self.set_finalizer(kind, object, false).await;
        }
        if is_provisioned(object) {
            return Ok(());
        }
        let Some(control_plane) = self.control_plane_of(object).map(str::to_owned) else { return Ok(()) };
        if self.grounds.cluster(&control_plane).is_none() {
            return Ok(());
        }
        self.set_finalizer(kind, object, true).await?;
        if self.grounds.node(&uid).is_none() {
            let made = match self.size_of(object) {
                Ok(size) => self.grounds.add_node(&control_plane, &uid, size).await,
                Err(error) => Err(error),
            };
            self.report_failure(kind, object, "Ready", made).await?;
        }
        let (cluster, name) = self.grounds.node(&uid).context("the node does not run")?;
        let node = cluster.node(name)?;
        let addresses = json!([{"type": "InternalIP", "address": node.address()}]);
        let machine = node.state().machine.as_ref().context("the node is no machine")?;
        self.patch(kind, object, json!({"spec": {"providerID": machine.provider_id}})).await?;
        let status = json!({
            "initialization": {"provisioned": true}, "addresses": addresses, "conditions": null,
        });
        self.set_status(kind, object, status).await
    }

    fn size_of(&self, object: &DynamicObject) -> Result<MachineSize> {
        let named = object.data["spec"]["machineType"].as_str().unwrap_or_default();
        match self.machine_types.get(named) {
            Some(size) => Ok(*size),
            None => bail!("the lab has no machine type {named:?}"),
        }
    }

    /// The uid of the control plane of an object's cluster.
    fn control_plane_of(&self, object: &DynamicObject) -> Option<&str> {
        self.control_planes.get(&(namespace(object), cluster_name(object)?)).map(String::as_str)
    }

    /// Says in a condition why something could not be made: Cluster API shows it to its users.
    async fn report_failure(
        &self,
        kind: Kind,
        object: &DynamicObject,
        condition: &str,
        made: Result<()>,
    ) -> Result<()> {
        let Err(error) = made else { return Ok(()) };
        let told = json!({"conditions": [{
            "type": condition, "status": "False", "reason": "InstanceCreateFailed", "message": format!("{error:#}"),
            "lastTransitionTime": object.metadata.creation_timestamp,
        }]});
        self.set_status(kind, object, told).await?;
        Err(error)
    }

    async fn set_finalizer(&self, kind: Kind, object: &DynamicObject, wanted: bool) -> Result<()> {
        let mut finalizers = object.finalizers().to_vec();
        if finalizers.iter().any(|each| each == FINALIZER) == wanted {
            return Ok(());
        }
        finalizers.retain(|each| each != FINALIZER);
        finalizers.extend(wanted.then(|| FINALIZER.to_owned()));
        // A finalizer that somebody else has set meanwhile must not be lost.
        let version = object.resource_version();
        self.patch(kind, object, json!({"metadata": {"finalizers": finalizers, "resourceVersion": version}}))
            .await
    }

    async fn patch(&self, kind: Kind, object: &DynamicObject, patch: Value) -> Result<()> {
        let api = kind.within(&self.client, &namespace(object));
        api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    async fn set_status(&self, kind: Kind, object: &DynamicObject, status: Value) -> Result<()> {
        let api = kind.within(&self.client, &namespace(object));
        let patch = Patch::Merge(json!({ "status": status }));
        api.patch_status(&object.name_any(), &PatchParams::default(), &patch).await?;
        Ok(())
    }
}

/// Whether an object has changed since it was read, or is gone: the next look sees that.
fn has_changed(error: &anyhow::Error) -> bool {
    let refused = error.downcast_ref::<kube::Error>();
    matches!(refused, Some(kube::Error::Api(status)) if matches!(status.code, 404 | 409))
}

fn namespace(object: &DynamicObject) -> String {
    object.namespace().unwrap_or_default()
}

fn cluster_name(object: &DynamicObject) -> Option<String> {
    object.labels().get(CLUSTER_NAME).cloned()
}

fn is_provisioned(object: &DynamicObject) -> bool {
    object.data.pointer("/status/initialization/provisioned") == Some(&json!(true))
}
