//! A tenant in the provider: made, kept and revoked.

use super::TenancyError;
use super::provider::Provider;
use super::rights::holder_of;
use crate::names::{FIELD_MANAGER, TENANCY_FINALIZER, TENANT_LABEL};
use crate::peering::sweep;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{LimitRange, Namespace, ResourceQuota};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, CustomResourceExt};
use portolan_api::conditions::{self, ConditionStatus, ConditionType, Finding};
use portolan_api::foreigncluster::{ClusterIdentity, IncomingPeering};
use portolan_api::{ForeignCluster, InvitationSpec, Reason};
use portolan_core::tenancy::names::{self, LEASE, Tenant};
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
    /// The consumer has peered by another invitation.
    Taken(String),
    /// It is being deleted: it can be had when it is gone.
    Leaving(String),
    /// A namespace that is to be open to it belongs to somebody else.
    Occupied {
        /// Which.
        namespace: String,
        /// To whom.
        holder: String,
    },
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
        let api = Api::<DynamicObject>::all_with(self.client.clone(), &ForeignCluster::api_resource());
        let all = call("list ForeignClusters", api.list(&Default::default())).await?.items;
        let occupied = holder_of(&self.client, &all, &invited.namespaces, &tenant.cluster).await?;
        let occupied = occupied.map(|(namespace, holder)| Claimed::Occupied { namespace, holder });
        let name = |each: &DynamicObject| each.metadata.name.clone().unwrap_or_default();
        let of_it = |each: &&DynamicObject| {
            each.data["spec"]["clusterIdentity"]["clusterID"] == tenant.cluster.as_str()
        };
        let incoming = |name: &str| IncomingPeering {
            user: Some(tenant.user()),
            tenant_namespace: Some(names::tenant_namespace(name)),
            namespaces: invited.namespaces.clone(),
            sees_cluster: invited.sees_cluster,
            sharing: invited.sharing.clone(),
        };
        if let Some(found) = all.iter().find(of_it) {
            let name = name(found);
            if found.metadata.deletion_timestamp.is_some() {
                return Ok(Claimed::Leaving(name));
            }
            match found.data["spec"]["incoming"]["user"].as_str() {
                Some(user) if user == tenant.user() => return Ok(Claimed::By(name)),
                Some(_) => return Ok(Claimed::Taken(name)),
                None => {}
            }
            if let Some(occupied) = occupied {
                return Ok(occupied);
            }
            let mut finalizers = found.metadata.finalizers.clone().unwrap_or_default();
            finalizers.retain(|each| each != TENANCY_FINALIZER);
            finalizers.push(TENANCY_FINALIZER.to_owned());
            let patch = Patch::Merge(json!({
                "metadata": { "resourceVersion": found.metadata.resource_version, "finalizers": finalizers },
                "spec": { "incoming": incoming(&name) },
            }));
            let params =
                PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
            let what = format!("write the tenant into ForeignCluster {name}");
            self.term.call(what, api.patch(&name, &params, &patch)).await?;
            return Ok(Claimed::By(name));
        }
        if let Some(occupied) = occupied {
            return Ok(occupied);
        }
        let taken = |wanted: &str| all.iter().any(|each| name(each) == wanted);
        let mut wanted = consumer.cluster_name.clone();
        if taken(&wanted) {
            wanted = format!("{wanted}-{}", &tenant.cluster[..8]);
        }
        let object = json!({
            "apiVersion": portolan_api::API_VERSION, "kind": "ForeignCluster",
            "metadata": { "name": wanted, "finalizers": [TENANCY_FINALIZER] },
            "spec": {
                "clusterIdentity": { "clusterID": tenant.cluster, "clusterName": wanted },
                "incoming": incoming(&wanted),
            },
        });
        let object: DynamicObject = serde_json::from_value(object)
            .map_err(|source| crate::peering::PeerError::Encode { what: "the ForeignCluster", source })?;
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        self.term.call(format!("create ForeignCluster {wanted}"), api.create(&params, &object)).await?;
        Ok(Claimed::By(wanted))
    }

    /// Looks at a ForeignCluster that may have a tenant.
    pub(super) async fn tenant(&self, name: &str) -> Result<Action, TenancyError> {
        let api: Api<ForeignCluster> = Api::all(self.client.clone());
        let found = call(format!("read ForeignCluster {name}"), api.get_opt(name)).await?;
        let Some(cluster) = found else { return Ok(Action::AwaitChange) };
        let kept = cluster.metadata.finalizers.iter().flatten().any(|each| each == TENANCY_FINALIZER);
        let user = cluster.spec.incoming.as_ref().and_then(|incoming| incoming.user.clone());
        let tenant = user.as_deref().and_then(Tenant::of_user);
        if cluster.metadata.deletion_timestamp.is_some() || tenant.is_none() {
            if kept {
                self.revoke(name, tenant.as_ref()).await?;
                self.recorder
                    .record(
                        &cluster,
                        EventType::Normal,
                        Reason::PeeringRevoked,
                        "its rights here and its namespace are removed",
                    )
                    .await;
                self.set_finalizer(&cluster, false).await?;
            }
            return Ok(Action::AwaitChange);
        }
        let Some(tenant) = tenant else { return Ok(Action::AwaitChange) };
        if !kept {
            self.set_finalizer(&cluster, true).await?;
            return Ok(Action::RequeueAfter(Duration::ZERO));
        }
        let lease = self.lease(name).await?;
        let holder = lease.as_ref().and_then(|lease| lease.spec.as_ref()?.holder_identity.clone());
        let is_leaving = lease.as_ref().is_some_and(|lease| {
            lease.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(LEAVING))
        });
        let has_come = holder.as_deref() == Some(tenant.user().as_str());
        if has_come && is_leaving {
            return self.part(&cluster).await;
        }
        let incoming = cluster.spec.incoming.clone().unwrap_or_default();
        let waiting = self.make(name, &tenant, &incoming.namespaces, incoming.sees_cluster).await?;
        self.tell(&cluster, &tenant, has_come).await?;
        Ok(Action::RequeueAfter(if waiting.is_empty() { PERIOD } else { BOUNDED_SOON }))
    }

    /// The Lease by which the consumer speaks.
    pub(super) async fn lease(&self, cluster: &str) -> Result<Option<Lease>, CallError> {
        let namespace = names::tenant_namespace(cluster);
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &namespace);
        call(format!("read Lease {namespace}/{LEASE}"), leases.get_opt(LEASE)).await
    }

    /// The consumer has ended the peering.
    pub(super) async fn part(&self, cluster: &ForeignCluster) -> Result<Action, TenancyError> {
        let name = cluster.metadata.name.clone().unwrap_or_default();
        let api: Api<ForeignCluster> = Api::all(self.client.clone());
        self.recorder
            .record(cluster, EventType::Normal, Reason::ConsumerLeft, "the consumer has ended the peering")
            .await;
        let what = format!("end the tenancy of ForeignCluster {name}");
        let parted = if cluster.spec.is_member() {
            let patch = Patch::Merge(json!({
                "metadata": { "resourceVersion": cluster.metadata.resource_version }, "spec": { "incoming": null },
            }));
            let params =
                PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
            self.term.call(what, api.patch(&name, &params, &patch)).await.map(|_| ())
        } else {
            self.term.call(what, api.delete(&name, &DeleteParams::default())).await.map(|_| ())
        };
        match parted {
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(Action::RequeueAfter(SOON)),
        }
    }

    /// Takes everything from a tenant: first its rights, in the whole cluster and in namespaces, so that its certificate is
    /// worth nothing from that moment on; then its namespace and its requests.
    async fn revoke(&self, name: &str, tenant: Option<&Tenant>) -> Result<(), TenancyError> {
        let selector = format!("{TENANT_LABEL}={name}");
        sweep::<ClusterRoleBinding>(&self.client, &selector).await?;
        sweep::<RoleBinding>(&self.client, &selector).await?;
        sweep::<ClusterRole>(&self.client, &selector).await?;
        // They bounded these rights. Nobody may be there to remove them later.
        sweep::<ResourceQuota>(&self.client, &selector).await?;
        sweep::<LimitRange>(&self.client, &selector).await?;
        let home = names::tenant_namespace(name);
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        gone(
            self.term
                .call(format!("delete Namespace {home}"), namespaces.delete(&home, &DeleteParams::default()))
                .await,
        )?;
        let requests: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        for request in
            tenant.into_iter().flat_map(|tenant| [names::request(&tenant.invitation), tenant.renewal()])
        {
            let what = format!("delete CertificateSigningRequest {request}");
            gone(self.term.call(what, requests.delete(&request, &DeleteParams::default())).await)?;
        }
        Ok(())
    }

    async fn set_finalizer(&self, cluster: &ForeignCluster, keep: bool) -> Result<(), CallError> {
        let name = cluster.metadata.name.clone().unwrap_or_default();
        let mut finalizers = cluster.metadata.finalizers.clone().unwrap_or_default();
        finalizers.retain(|each| each != TENANCY_FINALIZER);
        if keep {
            finalizers.push(TENANCY_FINALIZER.to_owned());
        }
        let api: Api<ForeignCluster> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({
            "metadata": { "resourceVersion": cluster.metadata.resource_version, "finalizers": finalizers },
        }));
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        gone(
            self.term
                .call(format!("set finalizers of ForeignCluster {name}"), api.patch(&name, &params, &patch))
                .await,
        )
    }

    /// Tells in the conditions how the peering stands.
    async fn tell(&self, cluster: &ForeignCluster, tenant: &Tenant, has_come: bool) -> Result<(), CallError> {
        let name = cluster.metadata.name.clone().unwrap_or_default();
        let (reason, message) = if has_come {
            let message =
                format!("it is tenant {}, as user {}", names::tenant_namespace(&name), tenant.user());
            (Reason::PeeringEstablished, message)
        } else {
            let message = format!(
                "the consumer has not fetched or not used its credential yet: `portolan peer` in that cluster goes on until \
                 invitation {} ends",
                tenant.invitation
            );
            (Reason::AwaitingConsumer, message)
        };
        let mut status = cluster.status.clone().unwrap_or_default();
        let mut types = vec![ConditionType::IncomingPeering];
        if !cluster.spec.is_member() {
            types.insert(0, ConditionType::Ready);
        }
        let now = self.clock.time().0;
        let holds: ConditionStatus = has_come.into();
        let mut changed = false;
        for type_ in types {
            let finding = Finding::new(type_, holds, reason, message.clone());
            changed |= conditions::set(&mut status.conditions, finding, cluster.metadata.generation, now);
        }
        if !changed {
            return Ok(());
        }
        let api: Api<ForeignCluster> = Api::all(self.client.clone());
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let update = ForeignCluster { status: Some(status), ..cluster.clone() };
        let what = format!("write status of ForeignCluster {name}");
        gone(self.term.call(what, api.replace_status(&name, &params, &update)).await)
    }
}

/// That an object is not there any more is no mistake.
pub(super) fn gone<T>(result: Result<T, CallError>) -> Result<(), CallError> {
    match result {
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(|_| ()),
    }
}
