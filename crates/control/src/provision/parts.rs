//! Making a cluster from templates, part by part. The Cluster comes first: all others belong to it and are deleted with it, so
//! that nothing is left over, wherever this stops. That all are there is marked on the Cluster at last.

use super::Provision;
use super::cluster_api::{clusters, machine_deployments};
use super::observe::Observed;
use super::order_error::OrderError;
use super::orders::manager;
use super::templates::{Owner, cluster, deployment_name, kind_of, worker};
use crate::names::PARTS_ANNOTATION;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResourceList};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch};
use portolan_api::cloudprovisioner::{ClusterTemplate, TemplateRef};
use portolan_core::provision::Failure;
use portolan_runtime::{CallError, call};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A template of the user's, and the kinds of it and of what is made from it.
struct Template<'a> {
    reference: &'a TemplateRef,
    kind: ApiResource,
    content: Value,
}

impl Provision {
    /// Creates a Cluster and all its parts. What is wrong with a template is found before anything is created.
    pub(super) async fn create_from(
        &self,
        observed: &Observed,
        template: &ClusterTemplate,
        (name, number): (&str, u32),
        pools: &BTreeMap<String, u32>,
    ) -> Result<(), OrderError> {
        let (plane, namespace) = (&template.control_plane, &template.namespace);
        for reference in [&template.infrastructure, &plane.template].into_iter().chain(&plane.machines) {
            self.template(namespace, reference).await?;
        }
        for machine_type in pools.keys() {
            let worker = worker(template, machine_type).map_err(OrderError::Refused)?;
            self.template(namespace, &worker.infrastructure).await?;
            self.template(namespace, &worker.bootstrap).await?;
        }
        self.create_object(&clusters(), cluster(&observed.object, template, (name, number))).await?;
        self.complete(observed, template, name).await?;
        for (machine_type, replicas) in pools {
            self.set_deployed(observed, template, name, (machine_type, *replicas)).await?;
        }
        Ok(())
    }

    /// Creates what a Cluster refers to, and marks the Cluster then.
    pub(super) async fn complete(
        &self,
        observed: &Observed,
        template: &ClusterTemplate,
        name: &str,
    ) -> Result<(), OrderError> {
        let (plane, namespace) = (&template.control_plane, observed.namespace_of(name));
        let Some(uid) = self.uid_of(&namespace, name).await? else { return Ok(()) };
        let owner = Owner { provisioner: &observed.object, namespace: &namespace, name, uid: &uid };
        let infrastructure = self.template(&template.namespace, &template.infrastructure).await?;
        let kind = self.kind(&template.infrastructure.api_group, kind_of(&template.infrastructure)).await?;
        let object = owner.instance(infrastructure.reference, &infrastructure.content);
        self.create_part(&kind, object).await?;
        if let Some(machines) = &plane.machines {
            self.copy(&owner, &template.namespace, machines, &owner.control_plane_machines()).await?;
        }
        let version = self.kubernetes_version(observed).await?;
        let described = self.template(&template.namespace, &plane.template).await?;
        let kind = self.kind(&plane.template.api_group, kind_of(&plane.template)).await?;
        self.create_part(&kind, owner.control_plane(template, &described.content, &version)).await?;
        // The change also has Cluster API look again: it may have looked before the parts were there.
        let mark = json!({ "metadata": { "annotations": { PARTS_ANNOTATION: "created" } } });
        let api = self.objects(&namespace, &clusters());
        let what = format!("mark Cluster {namespace}/{name}");
        match self.context.term.call(what, api.patch(name, &manager(), &Patch::Merge(mark))).await {
            Err(error) if error.is_not_found() => Ok(()),
            other => Ok(other.map(|_| ())?),
        }
    }

    /// Writes the number of nodes of a machine type, with the version of the MachineDeployment that it was read with; one that
    /// does not exist is created with copies of its templates.
    pub(super) async fn set_deployed(
        &self,
        observed: &Observed,
        template: &ClusterTemplate,
        cluster: &str,
        (machine_type, replicas): (&str, u32),
    ) -> Result<(), OrderError> {
        let namespace = observed.namespace_of(cluster);
        let name = deployment_name(cluster, machine_type);
        let api = self.objects(&namespace, &machine_deployments());
        let what = format!("read MachineDeployment {namespace}/{name}");
        let Some(live) = call(what, api.get_opt(&name)).await? else {
            return self.add_pool(observed, template, cluster, (machine_type, replicas)).await;
        };
        if live.data["spec"]["replicas"] == replicas {
            return Ok(());
        }
        let patch = Patch::Merge(json!({
            "metadata": { "resourceVersion": live.metadata.resource_version },
            "spec": { "replicas": replicas },
        }));
        let what = format!(
            "ask for {replicas} nodes of machine type {machine_type} in MachineDeployment {namespace}/{name}"
        );
        match self.context.term.call(what, api.patch(&name, &manager(), &patch)).await {
            // Somebody else has changed it: the next round looks again.
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(()),
            other => Ok(other.map(|_| ())?),
        }
    }

    async fn add_pool(
        &self,
        observed: &Observed,
        template: &ClusterTemplate,
        cluster: &str,
        (machine_type, replicas): (&str, u32),
    ) -> Result<(), OrderError> {
        let namespace = observed.namespace_of(cluster);
        let Some(uid) = self.uid_of(&namespace, cluster).await? else { return Ok(()) };
        let owner = Owner { provisioner: &observed.object, namespace: &namespace, name: cluster, uid: &uid };
        let worker = worker(template, machine_type).map_err(OrderError::Refused)?;
        let version = self.kubernetes_version(observed).await?;
        let name = owner.pool(machine_type);
        self.copy(&owner, &template.namespace, &worker.infrastructure, &name).await?;
        self.copy(&owner, &template.namespace, &worker.bootstrap, &name).await?;
        self.create_object(&machine_deployments(), owner.deployment(worker, &version, replicas)).await
    }

    /// Creates a copy of a template that belongs to a Cluster.
    async fn copy(
        &self,
        owner: &Owner<'_>,
        from: &str,
        reference: &TemplateRef,
        name: &str,
    ) -> Result<(), OrderError> {
        let template = self.template(from, reference).await?;
        self.create_part(&template.kind, owner.copy(name, reference, &template.content)).await
    }

    async fn create_part(&self, kind: &ApiResource, part: Result<Value, Failure>) -> Result<(), OrderError> {
        let mut object = part.map_err(OrderError::Refused)?;
        object["apiVersion"] = json!(kind.api_version);
        object["kind"] = json!(kind.kind);
        self.create_object(kind, object).await
    }

    async fn template<'a>(
        &self,
        namespace: &str,
        reference: &'a TemplateRef,
    ) -> Result<Template<'a>, OrderError> {
        let kind = self.kind(&reference.api_group, &reference.kind).await?;
        let what = format!("read {} {namespace}/{}", reference.kind, reference.name);
        let content = call(what, self.objects(namespace, &kind).get(&reference.name)).await?.data;
        Ok(Template { reference, kind, content })
    }

    /// A kind of a provider, in the version that the hub prefers of those that have it.
    async fn kind(&self, group: &str, kind: &str) -> Result<ApiResource, OrderError> {
        let lacking = || {
            let message =
                format!("the hub serves no kind {kind} of group {group}: install the provider that has it");
            OrderError::Refused(Failure { reason: "KindNotServed".to_owned(), message })
        };
        let served: APIGroup = match self.discover(&format!("/apis/{group}")).await {
            Err(error) if error.is_not_found() => return Err(lacking()),
            other => other?,
        };
        let preferred = served.preferred_version.iter().map(|preferred| preferred.version.clone());
        let others = served.versions.iter().map(|other| other.version.clone());
        for version in preferred.chain(others) {
            let all: APIResourceList = self.discover(&format!("/apis/{group}/{version}")).await?;
            let found = all.resources.into_iter().find(|each| each.kind == kind && !each.name.contains('/'));
            if let Some(found) = found {
                return Ok(ApiResource {
                    group: group.to_owned(),
                    api_version: format!("{group}/{version}"),
                    version,
                    kind: kind.to_owned(),
                    plural: found.name,
                });
            }
        }
        Err(lacking())
    }

    async fn discover<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<T, CallError> {
        let request = async {
            let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
            self.context.hub.client.request::<T>(request).await
        };
        call(format!("ask the hub what it serves at {path}"), request).await
    }

    /// The uid of a Cluster that exists and stays.
    async fn uid_of(&self, namespace: &str, name: &str) -> Result<Option<String>, CallError> {
        let api = self.objects(namespace, &clusters());
        let found = call(format!("read Cluster {namespace}/{name}"), api.get_metadata_opt(name)).await?;
        let stays = found.filter(|found| found.metadata.deletion_timestamp.is_none());
        Ok(stays.and_then(|found| found.metadata.uid))
    }

    fn objects(&self, namespace: &str, kind: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.context.hub.client.clone(), namespace, kind)
    }
}
