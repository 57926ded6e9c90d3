//! The rights of tenants that no ForeignCluster stands for any more: somebody has removed its finalizers.
//!
//! What is there is listed first and the ForeignClusters after it, each as a whole: rights come after their ForeignCluster, so
//! one that is not in the second list was deleted. A list that fails, or a kind that is not served, removes nothing.

use super::TenancyError;
use super::context::Provider;
use super::declared::Declared;
use super::gone::gone;
use crate::names::{TENANT_LABEL, TENANT_USER_ANNOTATION};
use crate::peering::if_same;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Api, Resource};
use portolan_core::tenancy::names::{self, Tenant};
use portolan_core::tenancy::orphan;
use portolan_runtime::{Action, CallError, call};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;

/// How often to look without any news: a namespace with pods stays until they are gone.
const PERIOD: Duration = Duration::from_secs(600);

impl Provider {
    /// Takes back everything that nothing stands for: of invitations and of tenants.
    pub(super) async fn sweep(&self) -> Result<Action, TenancyError> {
        self.burn_orphans().await?;
        Box::pin(self.sweep_tenants(None)).await?;
        Ok(Action::RequeueAfter(PERIOD))
    }

    /// Takes back the rights of tenants whose ForeignCluster does not exist, or of the tenant of one such: first the rights, so
    /// that its certificate is worth nothing from that moment on, and its namespace last.
    pub(super) async fn sweep_tenants(&self, cluster: Option<&str>) -> Result<(), TenancyError> {
        let selector =
            cluster.map_or_else(|| TENANT_LABEL.to_owned(), |name| format!("{TENANT_LABEL}={name}"));
        let made = ListParams::default().labels(&selector);
        let wide: Vec<ObjectMeta> = self.listed::<ClusterRoleBinding>(&made).await?;
        let bindings: Vec<ObjectMeta> = self.listed::<RoleBinding>(&made).await?;
        let roles: Vec<ObjectMeta> = self.listed::<ClusterRole>(&made).await?;
        let mut homes: Vec<ObjectMeta> = self.listed::<Namespace>(&made).await?;
        homes.retain(is_home);
        if [&wide, &bindings, &roles, &homes].iter().all(|all| all.is_empty()) {
            return Ok(());
        }
        let stands = |cluster: &Declared| {
            cluster.has_finalizer() || (cluster.user().is_some() && !cluster.is_leaving())
        };
        let standing: BTreeSet<String> =
            self.clusters().await?.iter().filter(|each| stands(each)).map(Declared::name).collect();
        let left = |all: Vec<ObjectMeta>| -> Vec<(Tenant, ObjectMeta)> {
            let tenant = |meta: &ObjectMeta| orphan(label(meta), user(meta), &standing);
            all.into_iter().filter_map(|meta| Some((tenant(&meta)?, meta))).collect()
        };
        let (wide, bindings, roles, homes) = (left(wide), left(bindings), left(roles), left(homes));
        let all = [&wide, &bindings, &roles, &homes];
        let tenants: BTreeSet<&Tenant> = all.into_iter().flatten().map(|(tenant, _)| tenant).collect();
        for tenant in &tenants {
            tracing::warn!(
                user = tenant.user(),
                "a tenant has rights and no ForeignCluster: they are removed"
            );
        }
        for (_, meta) in &wide {
            self.delete_if_unchanged(&Api::<ClusterRoleBinding>::all(self.client.clone()), meta).await?;
        }
        for (_, meta) in &bindings {
            let place = meta.namespace.clone().unwrap_or_default();
            self.delete_if_unchanged(&Api::<RoleBinding>::namespaced(self.client.clone(), &place), meta)
                .await?;
        }
        for (_, meta) in &roles {
            self.delete_if_unchanged(&Api::<ClusterRole>::all(self.client.clone()), meta).await?;
        }
        let requests: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        for tenant in tenants {
            for name in [names::request(&tenant.invitation), tenant.renewal()] {
                let what = format!("delete CertificateSigningRequest {name}");
                gone(self.term.call(what, requests.delete(&name, &DeleteParams::default())).await)?;
            }
        }
        for (_, meta) in &homes {
            self.remove_home(meta).await?;
        }
        Ok(())
    }

    /// Deletes the namespace of a tenant that has left. One in which something runs stays, and its quota with it.
    pub(super) async fn remove_home(&self, meta: &ObjectMeta) -> Result<(), CallError> {
        let home = meta.name.clone().unwrap_or_default();
        if meta.deletion_timestamp.is_some() {
            return Ok(());
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &home);
        let found = call(format!("list pods in namespace {home}"), pods.list_metadata(&one())).await?;
        if !found.items.is_empty() {
            tracing::warn!(
                namespace = home,
                "the namespace of a tenant that has left stays while pods are in it"
            );
            return Ok(());
        }
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let what = format!("delete Namespace {home} of a tenant that has left");
        gone(self.term.call(what, namespaces.delete(&home, &if_same(meta))).await)
    }

    async fn listed<K>(&self, params: &ListParams) -> Result<Vec<ObjectMeta>, CallError>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let all: Api<K> = Api::all(self.client.clone());
        let what = format!("list {} of tenants", K::plural(&()));
        let list = call(what, all.list_metadata(params)).await?;
        Ok(list.items.into_iter().map(|found| found.metadata).collect())
    }

    /// Deletes an object as it was read: not one that has become another tenant's by now.
    async fn delete_if_unchanged<K>(&self, api: &Api<K>, meta: &ObjectMeta) -> Result<(), CallError>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let name = meta.name.clone().unwrap_or_default();
        let read = Preconditions { uid: meta.uid.clone(), resource_version: meta.resource_version.clone() };
        let params = DeleteParams::default().preconditions(read);
        let what = format!("delete {} {name} of a tenant that has left", K::kind(&()));
        match gone(self.term.call(what, api.delete(&name, &params)).await) {
            Err(error) if error.is_conflict() => Ok(()),
            other => other,
        }
    }
}

/// Whether a namespace is that of a tenant by its name: administrators may give the label to their own ones.
fn is_home(meta: &ObjectMeta) -> bool {
    label(meta).is_some_and(|cluster| meta.name.as_deref() == Some(&names::tenant_namespace(cluster)))
}

fn label(meta: &ObjectMeta) -> Option<&str> {
    meta.labels.as_ref()?.get(TENANT_LABEL).map(String::as_str)
}

fn user(meta: &ObjectMeta) -> Option<&str> {
    meta.annotations.as_ref()?.get(TENANT_USER_ANNOTATION).map(String::as_str)
}

fn one() -> ListParams {
    ListParams::default().limit(1)
}
