//! The rights of a tenant, kept as its ForeignCluster says: made anew where they are missing, removed where they are not due
//! any more.
//!
//! A tenant may place in a namespace only while a quota bounds it there: the rights come after the quota, and go before it.

use super::context::Provider;
use super::declared::Declared;
use super::login::{Login, parts};
use crate::names::{HUB_LABEL, TENANT_LABEL};
use crate::peering::apply_by;
use crate::sharing::ENFORCED_NAME;
use k8s_openapi::api::core::v1::{Namespace, ResourceQuota};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Preconditions};
use kube::{Api, Client, Resource};
use portolan_core::tenancy::names::{Tenant, tenant_namespace};
use portolan_runtime::{CallError, call};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

/// The quota of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bounds {
    /// It bounds the tenant.
    Own,
    /// It is not there, or not in force.
    Missing,
    /// It bounds another tenant.
    Another,
}

impl Provider {
    /// Keeps the namespace and the rights of a tenant as they are to be; answers the namespaces in which it has no rights yet,
    /// since no quota bounds it there.
    pub(super) async fn make(
        &self,
        cluster: &str,
        tenant: &Tenant,
        login: Login,
        namespaces: &[String],
        sees_cluster: bool,
    ) -> Result<Vec<String>, CallError> {
        let found = self.found(cluster).await?;
        let (mut open, mut waiting) = (Vec::new(), Vec::new());
        for namespace in namespaces {
            match self.bounds(cluster, namespace).await? {
                Bounds::Own => open.push(namespace.clone()),
                // What is there stays: whoever deleted the quota gets another one in a moment.
                Bounds::Missing if found.bindings.contains_key(namespace) => open.push(namespace.clone()),
                Bounds::Missing | Bounds::Another => waiting.push(namespace.clone()),
            }
        }
        let wanted = parts(cluster, tenant, login, &open, sees_cluster);
        for object in &wanted {
            if !found.is_in_sync(object) {
                apply_by(&self.term, &self.client, object, "the provider").await?;
            }
        }
        self.remove_others(&found, &wanted).await?;
        Ok(waiting)
    }

    /// Removes the rights that the tenant is not to have any more.
    async fn remove_others(&self, found: &Found, wanted: &[Value]) -> Result<(), CallError> {
        for (namespace, bindings) in &found.bindings {
            let api: Api<RoleBinding> = Api::namespaced(self.client.clone(), namespace);
            for binding in bindings {
                if !is_wanted(wanted, "RoleBinding", &binding.metadata) {
                    self.remove(&api, binding).await?;
                }
            }
        }
        let api: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        for binding in &found.wide {
            if !is_wanted(wanted, "ClusterRoleBinding", &binding.metadata) {
                self.remove(&api, binding).await?;
            }
        }
        Ok(())
    }

    async fn remove<K>(&self, api: &Api<K>, object: &K) -> Result<(), CallError>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let name = object.meta().name.clone().unwrap_or_default();
        let same = Preconditions { uid: object.meta().uid.clone(), resource_version: None };
        let params = DeleteParams { preconditions: Some(same), ..DeleteParams::default() };
        match self.term.call(format!("delete {} {name}", K::kind(&())), api.delete(&name, &params)).await {
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            other => other.map(|_| ()),
        }
    }

    async fn bounds(&self, cluster: &str, namespace: &str) -> Result<Bounds, CallError> {
        let quotas: Api<ResourceQuota> = Api::namespaced(self.client.clone(), namespace);
        let what = format!("read ResourceQuota {namespace}/{ENFORCED_NAME}");
        let Some(quota) = call(what, quotas.get_opt(ENFORCED_NAME)).await? else {
            return Ok(Bounds::Missing);
        };
        let holder = quota.metadata.labels.as_ref().and_then(|labels| labels.get(TENANT_LABEL));
        let in_force = quota.status.is_some_and(|status| status.hard.is_some_and(|hard| !hard.is_empty()));
        Ok(match holder {
            Some(holder) if holder != cluster => Bounds::Another,
            Some(_) if in_force => Bounds::Own,
            _ => Bounds::Missing,
        })
    }

    /// What a tenant has.
    async fn found(&self, cluster: &str) -> Result<Found, CallError> {
        let own = ListParams::default().labels(&format!("{TENANT_LABEL}={cluster}"));
        let bindings: Api<RoleBinding> = Api::all(self.client.clone());
        let wide: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        let roles: Api<ClusterRole> = Api::all(self.client.clone());
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let home = tenant_namespace(cluster);
        let mut found = Found {
            wide: call("list the ClusterRoleBindings of a tenant", wide.list(&own)).await?.items,
            roles: call("list the ClusterRoles of a tenant", roles.list(&own)).await?.items,
            home: call(format!("read Namespace {home}"), namespaces.get_opt(&home)).await?,
            ..Found::default()
        };
        for binding in call("list the RoleBindings of a tenant", bindings.list(&own)).await?.items {
            let place = binding.metadata.namespace.clone().unwrap_or_default();
            found.bindings.entry(place).or_default().push(binding);
        }
        Ok(found)
    }
}

/// What a tenant has, by namespace where it is in one.
#[derive(Debug, Default)]
struct Found {
    bindings: BTreeMap<String, Vec<RoleBinding>>,
    wide: Vec<ClusterRoleBinding>,
    roles: Vec<ClusterRole>,
    home: Option<Namespace>,
}

impl Found {
    /// Whether an object is there as it is wanted.
    fn is_in_sync(&self, wanted: &Value) -> bool {
        let name = wanted["metadata"]["name"].as_str();
        match wanted["kind"].as_str() {
            // Its level of Pod Security follows what is shared.
            Some("Namespace") => self.home.as_ref().is_some_and(|home| {
                home.metadata.labels.as_ref().and_then(|labels| labels.get(TENANT_LABEL)).map(String::as_str)
                    == wanted["metadata"]["labels"][TENANT_LABEL].as_str()
            }),
            Some("RoleBinding") => {
                let place = wanted["metadata"]["namespace"].as_str().unwrap_or_default();
                self.bindings.get(place).into_iter().flatten().any(|each| is_same(each, name, wanted))
            }
            Some("ClusterRoleBinding") => self.wide.iter().any(|each| is_same(each, name, wanted)),
            Some("ClusterRole") => self.roles.iter().any(|each| is_same(each, name, wanted)),
            _ => false,
        }
    }
}

/// Whether something of this kind and name is wanted.
fn is_wanted(wanted: &[Value], kind: &str, found: &ObjectMeta) -> bool {
    wanted.iter().any(|object| {
        let metadata = &object["metadata"];
        object["kind"] == kind
            && metadata["name"].as_str() == found.name.as_deref()
            && metadata["namespace"].as_str() == found.namespace.as_deref()
    })
}

/// Whether an object has this name, and gives what is wanted to whom it is wanted.
fn is_same<K: Resource + serde::Serialize>(found: &K, name: Option<&str>, wanted: &Value) -> bool {
    let given = json!(found);
    found.meta().name.as_deref() == name
        && ["roleRef", "subjects", "rules"].iter().all(|field| given.get(field) == wanted.get(field))
}

/// Who has one of these namespaces already: another tenant, or a hub. A namespace belongs to one of them: what the one may
/// read and use there is not bounded for the other.
pub(super) async fn holder_of(
    client: &Client,
    clusters: &[Declared],
    namespaces: &[String],
    own: &str,
) -> Result<Option<(String, String)>, CallError> {
    let wanted: BTreeSet<&str> = namespaces.iter().map(String::as_str).collect();
    for each in clusters.iter().filter(|each| !each.is_of_cluster(own)) {
        let incoming = each.spec("/incoming");
        let named = incoming["namespaces"].as_array().into_iter().flatten();
        let mut all = named.chain([&incoming["tenantNamespace"]]).filter_map(Value::as_str);
        if let Some(taken) = all.find(|name| wanted.contains(name)) {
            return Ok(Some((taken.to_owned(), format!("tenant {}", each.name()))));
        }
    }
    for namespace in namespaces {
        let bindings: Api<RoleBinding> = Api::namespaced(client.clone(), namespace);
        let what = format!("list the RoleBindings of hubs in namespace {namespace}");
        let of_hubs = ListParams::default().labels(HUB_LABEL);
        let found = call(what, bindings.list_metadata(&of_hubs)).await?.items;
        let mut hubs =
            found.into_iter().filter_map(|binding| binding.metadata.labels?.get(HUB_LABEL).cloned());
        if let Some(hub) = hubs.find(|hub| hub != own) {
            return Ok(Some((namespace.clone(), format!("the hub with identity {hub}"))));
        }
    }
    Ok(None)
}
