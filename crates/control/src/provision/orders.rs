//! Carrying out orders in Cluster API. Each can be repeated: what is done already is no error.

use super::Provision;
use super::cluster_api::{ClusterClass, DELETE_ANNOTATION, MARK, classes, clusters, machines};
use super::observe::Observed;
use super::order_error::OrderError;
use super::topology::{class_of, cluster, home_of, pool};
use super::visit::{Errand, Visit};
use crate::names::{FIELD_MANAGER, MACHINE_TYPE_ANNOTATION};
use crate::peering::PeerError;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use portolan_core::provision::{Failure, Order};
use portolan_runtime::{CallError, call};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Observed {
    /// The namespace of a Cluster: where it is seen, or where it is made.
    pub(super) fn namespace_of(&self, cluster: &str) -> String {
        self.namespaces.get(cluster).cloned().unwrap_or_else(|| home_of(&self.object))
    }
}

impl Provision {
    /// Carries out one order, or has it carried out by a visit. `open` are the namespaces that a new member opens to the hub.
    pub(super) async fn carry_out(
        &self,
        observed: &Arc<Observed>,
        order: &Order,
        open: &BTreeSet<String>,
    ) -> Result<(), OrderError> {
        match order {
            Order::CreateCluster { name, number, pools } => {
                let created = self.create(observed, name, *number, pools).await;
                self.remember_refusal(name, &created);
                created
            }
            Order::CompleteCluster { name } => {
                let completed = match &observed.object.spec.cluster_template {
                    Some(template) => self.complete(observed, template, name).await,
                    None => Ok(()),
                };
                self.remember_refusal(name, &completed);
                completed
            }
            Order::SetReplicas { cluster, machine_type, replicas } => {
                self.set_replicas(observed, cluster, machine_type, *replicas).await
            }
            Order::MarkForDeletion { cluster, machines } => {
                self.mark(observed, cluster, machines, json!(MARK)).await
            }
            Order::Unmark { cluster, machines } => self.mark(observed, cluster, machines, Value::Null).await,
            Order::Peer { cluster, .. } => {
                let (observed, cluster) = (Arc::clone(observed), cluster.clone());
                self.send(Visit { errand: Errand::Peer, observed, cluster, namespaces: open.clone() });
                Ok(())
            }
            Order::Unpeer { member, abandon } => self.unpeer(observed, member, *abandon).await,
            Order::KeepPeered { member } => self.keep_peered(observed, member).await,
            Order::DeleteCluster { name } => self.delete(observed, name).await,
        }
    }

    async fn create(
        &self,
        observed: &Observed,
        name: &str,
        number: u32,
        pools: &BTreeMap<String, u32>,
    ) -> Result<(), OrderError> {
        if let Some(template) = &observed.object.spec.cluster_template {
            return self.create_from(observed, template, (name, number), pools).await;
        }
        let class = self.class(observed).await?;
        let version = self.kubernetes_version(observed).await?;
        let object = cluster(&observed.object, &class.spec, &version, (name, number), pools)
            .map_err(OrderError::Refused)?;
        self.create_object(&clusters(), object).await
    }

    /// Creates an object in the hub. One of that name that exists is ours: its name follows from the uid of the
    /// CloudProvisioner.
    pub(super) async fn create_object(&self, kind: &ApiResource, object: Value) -> Result<(), OrderError> {
        let object: DynamicObject = serde_json::from_value(object)
            .map_err(|source| PeerError::Encode { what: "an object of Cluster API", source })?;
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let api = Api::<DynamicObject>::namespaced_with(self.context.hub.client.clone(), &namespace, kind);
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let what = format!("create {} {namespace}/{name}", kind.kind);
        match self.context.term.call(what, api.create(&params, &object)).await {
            Err(error) if error.is_conflict() => Ok(()),
            other => Ok(other.map(|_| ())?),
        }
    }

    /// Remembers why a Cluster cannot be created, if asking again will not help: the plan gives it up in time.
    fn remember_refusal(&self, name: &str, created: &Result<(), OrderError>) {
        let failure = match created {
            Err(OrderError::Refused(failure)) => Some(failure.clone()),
            Err(OrderError::Call(error)) if error.is_final() || error.is_not_found() => {
                Some(Failure { reason: "Refused".to_owned(), message: error.to_string() })
            }
            Err(OrderError::Call(_) | OrderError::Peer(_) | OrderError::Connect(_)) | Ok(()) => None,
        };
        let mut state = self.state();
        match failure {
            Some(failure) => _ = state.refused.insert(name.to_owned(), failure),
            None => _ = state.refused.remove(name),
        }
    }

    async fn class(&self, observed: &Observed) -> Result<ClusterClass, CallError> {
        let reference = class_of(&observed.object);
        let hub = self.context.hub.client.clone();
        let api = Api::<ClusterClass>::namespaced_with(hub, &reference.namespace, &classes());
        let what = format!("read ClusterClass {}/{}", reference.namespace, reference.name);
        call(what, api.get(&reference.name)).await
    }

    /// The version of Kubernetes that the cluster gets: that of the hub, unless the spec says another one.
    pub(super) async fn kubernetes_version(&self, observed: &Observed) -> Result<String, CallError> {
        if let Some(version) = &observed.object.spec.kubernetes_version {
            return Ok(version.clone());
        }
        let version =
            call("ask the hub for its version", self.context.hub.client.apiserver_version()).await?;
        // Distributions add their own suffix, such as +k3s1, which others do not know.
        let plain = version.git_version.split(['+', '-']).next().unwrap_or_default();
        Ok(plain.to_owned())
    }

    /// Writes the number of nodes of a machine type, with the version of the Cluster that it was read with.
    async fn set_replicas(
        &self,
        observed: &Observed,
        cluster: &str,
        machine_type: &str,
        replicas: u32,
    ) -> Result<(), OrderError> {
        if let Some(template) = &observed.object.spec.cluster_template {
            return self.set_deployed(observed, template, cluster, (machine_type, replicas)).await;
        }
        let namespace = observed.namespace_of(cluster);
        let api =
            Api::<DynamicObject>::namespaced_with(self.context.hub.client.clone(), &namespace, &clusters());
        let live = match call(format!("read Cluster {namespace}/{cluster}"), api.get(cluster)).await {
            Err(error) if error.is_not_found() => return Ok(()),
            other => other?,
        };
        let mut pools = live.data["spec"]["topology"]["workers"]["machineDeployments"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let of_type =
            |pool: &&mut Value| pool["metadata"]["annotations"][MACHINE_TYPE_ANNOTATION] == machine_type;
        match pools.iter_mut().find(of_type) {
            Some(pool) if pool["replicas"] == replicas => return Ok(()),
            Some(pool) => pool["replicas"] = json!(replicas),
            None => {
                let class = self.class(observed).await?;
                let added = pool(&observed.object, &class.spec, machine_type, replicas)
                    .map_err(OrderError::Refused)?;
                pools.push(added);
            }
        }
        let patch = Patch::Merge(json!({
            "metadata": { "resourceVersion": live.metadata.resource_version },
            "spec": { "topology": { "workers": { "machineDeployments": pools } } },
        }));
        let what = format!(
            "ask for {replicas} nodes of machine type {machine_type} in Cluster {namespace}/{cluster}"
        );
        match self.context.term.call(what, api.patch(cluster, &manager(), &patch)).await {
            // Somebody else has changed it: the next round looks again.
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(()),
            other => Ok(other.map(|_| ())?),
        }
    }

    /// Sets Cluster API's annotation that has machines deleted first, or removes it.
    async fn mark(
        &self,
        observed: &Observed,
        cluster: &str,
        names: &BTreeSet<String>,
        mark: Value,
    ) -> Result<(), OrderError> {
        let namespace = observed.namespace_of(cluster);
        let api =
            Api::<DynamicObject>::namespaced_with(self.context.hub.client.clone(), &namespace, &machines());
        let patch = Patch::Merge(json!({ "metadata": { "annotations": { DELETE_ANNOTATION: mark } } }));
        for name in names {
            let what = format!("mark Machine {namespace}/{name}");
            match self.context.term.call(what, api.patch(name, &manager(), &patch)).await {
                Err(error) if error.is_not_found() => {}
                other => _ = other?,
            }
        }
        Ok(())
    }

    async fn delete(&self, observed: &Observed, name: &str) -> Result<(), OrderError> {
        let namespace = observed.namespace_of(name);
        let api =
            Api::<DynamicObject>::namespaced_with(self.context.hub.client.clone(), &namespace, &clusters());
        let what = format!("delete Cluster {namespace}/{name}");
        match self.context.term.call(what, api.delete(name, &DeleteParams::default())).await {
            Err(error) if error.is_not_found() => Ok(()),
            other => Ok(other.map(|_| ())?),
        }
    }
}

pub(super) fn manager() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}
