//! A tenant in the provider: made, kept and revoked.

use super::TenancyError;
use super::by_token::revoked;
use super::context::Provider;
use super::declared::{Declared, declared};
use super::gone::gone;
use super::login::Login;
use super::objects::{Whose, whose};
use super::owners::Obstacle;
use super::rights::holder_of;
use crate::names::{
    FIELD_MANAGER, TENANCY_FINALIZER, TENANT_LABEL, TENANT_LOGIN_ANNOTATION, TENANT_USER_ANNOTATION,
};
use crate::peering::{NAMESPACE, PeerError, sweep_those};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions};
use portolan_api::conditions::{self, ConditionStatus, ConditionType, Finding};
use portolan_api::foreigncluster::{ClusterIdentity, IncomingPeering};
use portolan_api::{Invitation, InvitationSpec, Reason};
use portolan_core::tenancy::names::{self, LEASE, Tenant};
use portolan_core::tenancy::{Presence, is_abandoned, is_claim, presence};
use portolan_runtime::{Action, CallError, EventType, call};
use serde_json::json;
use std::time::Duration;

/// On the Lease of a consumer: it has ended the peering.
pub(super) const LEAVING: &str = "portolan.dev/leaving";

/// How often a tenant is looked at without news.
const PERIOD: Duration = Duration::from_secs(60);

/// How soon to look again at what is on its way.
const SOON: Duration = Duration::from_secs(2);

/// How soon to look again whether quotas bound a tenant.
const BOUNDED_SOON: Duration = Duration::from_secs(5);

/// Whose ForeignCluster a tenant has.
pub(super) enum Claimed {
    /// It is the tenant's, by this name.
    By(String),
    /// Something that ends by itself stands in the way.
    Wait(String),
    /// The consumer cannot have one.
    Refused(String),
}

impl Provider {
    /// Makes the ForeignCluster of a consumer the tenant's: one cluster has one ForeignCluster, and that names one user. So
    /// nobody has two identities, however many invitations are used at the same time.
    pub(super) async fn claim(
        &self,
        tenant: &Tenant,
        consumer: &ClusterIdentity,
        invited: &InvitationSpec,
    ) -> Result<Claimed, TenancyError> {
        let all = self.clusters().await?;
        let found = all.iter().find(|each| each.is_of_cluster(&tenant.cluster));
        let is_taken = |wanted: &str| all.iter().any(|each| each.name() == wanted);
        let name = match found {
            Some(found) => found.name(),
            None => names::foreign_cluster(&consumer.cluster_name, &tenant.cluster, is_taken),
        };
        if let Some(found) = found {
            if found.is_leaving() {
                let why = format!("waits until ForeignCluster {name} is gone, which is being deleted");
                return Ok(Claimed::Wait(why));
            }
            match found.user() {
                Some(user) if user == tenant.user() => return Ok(Claimed::By(name)),
                Some(_) => {
                    return Ok(Claimed::Refused(format!(
                        "the cluster has peered already, as {name}: `portolan unpeer {name}` on the provider ends that"
                    )));
                }
                // Rights of the last tenant have the names of those of the next one.
                None if found.has_finalizer() => {
                    let why = format!(
                        "waits until the rights of the last tenant of ForeignCluster {name} are removed"
                    );
                    return Ok(Claimed::Wait(why));
                }
                None => {}
            }
            // It may have been made since the consumer was looked at.
            if !invited.accepted && is_claim(Some(found.known(&name)), invited.consumer.as_deref()) {
                return Ok(Claimed::Refused(format!(
                    "the cluster says that it is ForeignCluster {name}, for which this invitation was not made: `portolan invite \
                     --name {name}` makes one"
                )));
            }
            if name.len() > names::LONGEST_FOREIGN_CLUSTER {
                return Ok(Claimed::Refused(format!(
                    "the cluster is ForeignCluster {name} here, whose name has {} characters; the namespace of a tenant is named \
                     after it, so {} are the most: `portolan unpeer {name}`, and peer it by a shorter name",
                    name.len(),
                    names::LONGEST_FOREIGN_CLUSTER
                )));
            }
        }
        if let Some((namespace, holder)) =
            holder_of(&self.client, &all, &invited.namespaces, &tenant.cluster).await?
        {
            return Ok(Claimed::Refused(TenancyError::NamespaceTaken { namespace, holder }.to_string()));
        }
        // Before the name is used by anybody else who believes that the namespace is the tenant's.
        match self.home(&name, tenant).await? {
            None => {}
            Some(Obstacle::Passing(why)) => return Ok(Claimed::Wait(why)),
            Some(Obstacle::Lasting(why)) => return Ok(Claimed::Refused(why)),
        }
        let incoming = IncomingPeering {
            user: Some(tenant.user()),
            tenant_namespace: Some(names::tenant_namespace(&name)),
            namespaces: invited.namespaces.clone(),
            sees_cluster: invited.sees_cluster,
            sharing: invited.sharing.clone(),
        };
        let annotations = json!({ TENANT_USER_ANNOTATION: tenant.user() });
        let api = declared(&self.client);
        let Some(found) = found else {
            let object = json!({
                "apiVersion": portolan_api::API_VERSION, "kind": "ForeignCluster",
                "metadata": { "name": name, "finalizers": [TENANCY_FINALIZER], "annotations": annotations },
                "spec": {
                    "clusterIdentity": { "clusterID": tenant.cluster, "clusterName": name },
                    "incoming": incoming,
                },
            });
            let object: DynamicObject = serde_json::from_value(object)
                .map_err(|source| PeerError::Encode { what: "the ForeignCluster", source })?;
            let params =
                PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
            self.term.call(format!("create ForeignCluster {name}"), api.create(&params, &object)).await?;
            return Ok(Claimed::By(name));
        };
        let mut finalizers = found.meta().finalizers.clone().unwrap_or_default();
        finalizers.push(TENANCY_FINALIZER.to_owned());
        let annotations = json!({ TENANT_USER_ANNOTATION: tenant.user(), TENANT_LOGIN_ANNOTATION: null });
        let patch = Patch::Merge(json!({
            "metadata": {
                "resourceVersion": found.meta().resource_version, "finalizers": finalizers, "annotations": annotations,
            },
            "spec": { "incoming": incoming },
        }));
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let what = format!("write the tenant into ForeignCluster {name}");
        self.term.call(what, api.patch(&name, &params, &patch)).await?;
        Ok(Claimed::By(name))
    }

    /// The ForeignCluster whose identity a consumer names, if an administrator has to say that it is that one.
    pub(super) async fn claimed(
        &self,
        tenant: &Tenant,
        invited: &InvitationSpec,
    ) -> Result<Option<String>, TenancyError> {
        let all = self.clusters().await?;
        let found = all.iter().find(|each| each.is_of_cluster(&tenant.cluster) && !each.is_leaving());
        let name = found.map(Declared::name);
        let known = found.zip(name.as_deref()).map(|(found, name)| found.known(name));
        Ok(if is_claim(known, invited.consumer.as_deref()) { name } else { None })
    }

    /// Looks at a ForeignCluster that may have a tenant.
    pub(super) async fn tenant(&self, name: &str) -> Result<Action, TenancyError> {
        let Some(cluster) = self.cluster(name).await? else {
            Box::pin(self.sweep_tenants(Some(name))).await?;
            return Ok(Action::AwaitChange);
        };
        let Some(tenant) = cluster.tenant().filter(|_| !cluster.is_leaving()) else {
            if cluster.has_finalizer() {
                if cluster.login() == Login::Token {
                    self.revoke_account(name, cluster.last_tenant().as_ref()).await?;
                }
                self.revoke(name, cluster.last_tenant().as_ref()).await?;
                if !cluster.is_leaving() && cluster.has_had_consumer() {
                    let message = "the cluster consumes from this one no more: its rights here are removed";
                    let ended = (false, Reason::PeeringRevoked, message.to_owned());
                    self.tell_incoming(&cluster, ended).await?;
                    return Ok(Action::RequeueAfter(Duration::ZERO));
                }
                let (reason, note) =
                    (Reason::PeeringRevoked, "its rights here and its namespace are removed");
                self.recorder.record(&cluster.regarding(), EventType::Normal, reason, note).await;
                self.set_finalizer(&cluster, false).await?;
            }
            return Ok(Action::AwaitChange);
        };
        if !cluster.has_finalizer() {
            self.set_finalizer(&cluster, true).await?;
            return Ok(Action::RequeueAfter(Duration::ZERO));
        }
        let lease = self.lease(name).await?;
        let holder = lease.as_ref().and_then(|lease| lease.spec.as_ref()?.holder_identity.clone());
        let is_leaving = lease.as_ref().is_some_and(|lease| {
            lease.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(LEAVING))
        });
        let presence = presence(&tenant.user(), holder.as_deref(), cluster.has_had_consumer());
        if presence == Presence::Here && is_leaving {
            let (reason, note) = (Reason::ConsumerLeft, "the consumer has ended the peering");
            self.part(&cluster, reason, note).await?;
            return Ok(Action::RequeueAfter(SOON));
        }
        if presence == Presence::Awaited && self.is_abandoned(&cluster, &tenant).await? {
            self.part(&cluster, Reason::PeeringRevoked, &never_came(&tenant)).await?;
            return Ok(Action::RequeueAfter(SOON));
        }
        let (namespaces, sees_cluster) = (cluster.namespaces(), cluster.sees_cluster());
        let login = cluster.login();
        let waiting = self.make(name, &tenant, login, &namespaces, sees_cluster).await?;
        let found = if login == Login::Token && !self.has_account(name).await? {
            revoked(name)
        } else {
            found(name, &tenant, presence)
        };
        self.tell_incoming(&cluster, found).await?;
        Ok(Action::RequeueAfter(if waiting.is_empty() { PERIOD } else { BOUNDED_SOON }))
    }

    /// Whether a consumer that never came cannot come any more.
    async fn is_abandoned(&self, cluster: &Declared, tenant: &Tenant) -> Result<bool, CallError> {
        let (since, now) = (cluster.awaited_since(), self.clock.now());
        if !is_abandoned(false, since, now) {
            return Ok(false);
        }
        let invitations: Api<Invitation> = Api::namespaced(self.client.clone(), NAMESPACE);
        // All of them: that one is not found may mean that the kind is not served.
        let all = call("list Invitations", invitations.list_metadata(&ListParams::default())).await?.items;
        let exists = all.iter().any(|each| each.metadata.name.as_ref() == Some(&tenant.invitation));
        Ok(is_abandoned(exists, since, now))
    }

    /// The invitation of a tenant was deleted: one that has not come by it does not come any more.
    pub(super) async fn forsake(&self, invitation: &str) -> Result<(), TenancyError> {
        let all = self.clusters().await?;
        let is_its = |tenant: &Tenant| tenant.invitation == invitation;
        let found = all.iter().filter(|each| !each.is_leaving());
        for cluster in found.filter(|each| each.tenant().as_ref().is_some_and(is_its)) {
            let Some(tenant) = cluster.tenant() else { continue };
            let lease = self.lease(&cluster.name()).await?;
            let holder = lease.and_then(|lease| lease.spec?.holder_identity);
            if presence(&tenant.user(), holder.as_deref(), cluster.has_had_consumer()) == Presence::Awaited {
                self.part(cluster, Reason::PeeringRevoked, &never_came(&tenant)).await?;
            }
        }
        Ok(())
    }

    /// The Lease by which the consumer speaks.
    pub(super) async fn lease(&self, cluster: &str) -> Result<Option<Lease>, CallError> {
        let namespace = names::tenant_namespace(cluster);
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &namespace);
        call(format!("read Lease {namespace}/{LEASE}"), leases.get_opt(LEASE)).await
    }

    /// Ends the peering with the tenant of a ForeignCluster as it was read.
    pub(super) async fn part(&self, cluster: &Declared, reason: Reason, note: &str) -> Result<(), CallError> {
        let name = cluster.name();
        let api = declared(&self.client);
        self.recorder.record(&cluster.regarding(), EventType::Normal, reason, note).await;
        let what = format!("end the tenancy of ForeignCluster {name}");
        let version = cluster.meta().resource_version.clone();
        let parted = if cluster.is_more_than_consumer() {
            let patch = Patch::Merge(json!({
                "metadata": { "resourceVersion": version }, "spec": { "incoming": null },
            }));
            let params =
                PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
            self.term.call(what, api.patch(&name, &params, &patch)).await.map(|_| ())
        } else {
            let as_read = Preconditions { uid: cluster.meta().uid.clone(), resource_version: version };
            let params = DeleteParams::default().preconditions(as_read);
            self.term.call(what, api.delete(&name, &params)).await.map(|_| ())
        };
        gone(parted)
    }

    /// Takes everything from a tenant: first its rights, in the whole cluster and in namespaces, so that its certificate is
    /// worth nothing from that moment on; then its namespace and its requests. What another tenant has by the same name stays,
    /// if it is known which one is meant.
    async fn revoke(&self, name: &str, tenant: Option<&Tenant>) -> Result<(), TenancyError> {
        let selector = format!("{TENANT_LABEL}={name}");
        let is_its = |meta: &ObjectMeta| match tenant {
            Some(tenant) => whose(meta, name, tenant) == Whose::Its,
            None => {
                meta.labels.as_ref().and_then(|all| all.get(TENANT_LABEL)).is_some_and(|label| label == name)
            }
        };
        sweep_those::<ClusterRoleBinding>(&self.client, &selector, is_its).await?;
        sweep_those::<RoleBinding>(&self.client, &selector, is_its).await?;
        sweep_those::<ClusterRole>(&self.client, &selector, is_its).await?;
        let home = names::tenant_namespace(name);
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let found = call(format!("look for Namespace {home}"), namespaces.get_metadata_opt(&home)).await?;
        if let Some(meta) = found.map(|found| found.metadata).filter(is_its) {
            self.remove_home(&meta).await?;
        }
        let requests: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        for request in
            tenant.into_iter().flat_map(|tenant| [names::request(&tenant.invitation), tenant.renewal()])
        {
            let what = format!("delete CertificateSigningRequest {request}");
            gone(self.term.call(what, requests.delete(&request, &DeleteParams::default())).await)?;
        }
        Ok(())
    }

    async fn set_finalizer(&self, cluster: &Declared, keep: bool) -> Result<(), CallError> {
        let name = cluster.name();
        let mut finalizers = cluster.meta().finalizers.clone().unwrap_or_default();
        finalizers.retain(|each| each != TENANCY_FINALIZER);
        if keep {
            finalizers.push(TENANCY_FINALIZER.to_owned());
        }
        let user = cluster.user().filter(|_| keep);
        let mut annotations = json!({ TENANT_USER_ANNOTATION: user });
        if !keep {
            // What comes next by this name may sign in otherwise.
            annotations[TENANT_LOGIN_ANNOTATION] = json!(null);
        }
        let patch = Patch::Merge(json!({
            "metadata": {
                "resourceVersion": cluster.meta().resource_version, "finalizers": finalizers,
                "annotations": annotations,
            },
        }));
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let what = format!("set finalizers of ForeignCluster {name}");
        gone(self.term.call(what, declared(&self.client).patch(&name, &params, &patch)).await)
    }

    /// Tells in the conditions how the peering stands.
    async fn tell_incoming(
        &self,
        cluster: &Declared,
        (holds, reason, message): (bool, Reason, String),
    ) -> Result<(), CallError> {
        let name = cluster.name();
        // Conditions of others that cannot be read are not overwritten.
        let Some(mut conditions) = cluster.conditions() else { return Ok(()) };
        let mut types = vec![ConditionType::IncomingPeering];
        // Of one that this cluster consumes from too, the other side decides.
        if !cluster.is_more_than_consumer() {
            types.insert(0, ConditionType::Ready);
        }
        let now = self.clock.time().0;
        let holds: ConditionStatus = holds.into();
        let mut changed = false;
        for type_ in types {
            let finding = Finding::new(type_, holds, reason, message.clone());
            changed |= conditions::set(&mut conditions, finding, cluster.meta().generation, now);
        }
        if !changed {
            return Ok(());
        }
        let patch = Patch::Merge(json!({
            "metadata": { "resourceVersion": cluster.meta().resource_version }, "status": { "conditions": conditions },
        }));
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let what = format!("write status of ForeignCluster {name}");
        gone(self.term.call(what, declared(&self.client).patch_status(&name, &params, &patch)).await)
    }
}

/// How the peering stands with a tenant.
fn found(name: &str, tenant: &Tenant, presence: Presence) -> (bool, Reason, String) {
    let home = names::tenant_namespace(name);
    match presence {
        Presence::Here => {
            let message = format!("it is tenant {home}, as user {}", tenant.user());
            (true, Reason::PeeringEstablished, message)
        }
        Presence::Awaited => {
            let message = format!(
                "the consumer has not fetched or not used its credential yet: `portolan peer` in that cluster goes on until \
                 invitation {} ends",
                tenant.invitation
            );
            (false, Reason::AwaitingConsumer, message)
        }
        Presence::Missing => {
            let message = format!(
                "Lease {home}/{LEASE}, by which the consumer says that it is there, does not exist or names another user: a \
                 consumer that has not left creates it again within some minutes; its rights stay"
            );
            (false, Reason::ConsumerNotSeen, message)
        }
    }
}

fn never_came(tenant: &Tenant) -> String {
    format!("invitation {} was deleted before the consumer had its credential", tenant.invitation)
}
