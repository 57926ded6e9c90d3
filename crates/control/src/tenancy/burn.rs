//! The end of an invitation.

use super::TenancyError;
use super::context::Provider;
use super::gone::gone;
use super::objects::asking;
use super::provider::{signed, until};
use crate::names::INVITATION_LABEL;
use crate::peering::{NAMESPACE, apply_by};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use portolan_api::Invitation;
use portolan_api::conditions::{self, ConditionType};
use portolan_api::invitation::InvitationPhase;
use portolan_core::tenancy::names;
use portolan_runtime::{Action, call};
use std::time::Duration;

/// How long an invitation that is over can be looked at.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// How long a consumer that is refused can read why.
const TOLD_FOR: Duration = Duration::from_secs(20);

impl Provider {
    /// Ends the account of an invitation that is over. Nothing can be asked for by it from now on, but a consumer that is
    /// refused can still read why.
    pub(super) async fn wind_up(&self, id: &str, invitation: &Invitation) -> Result<Action, TenancyError> {
        let status = invitation.status.clone().unwrap_or_default();
        let ready = conditions::find(&status.conditions, ConditionType::Ready);
        let refused = ready.filter(|_| status.phase == InvitationPhase::Refused);
        let told =
            refused.and_then(|ready| ready.last_transition_time.0.saturating_add(signed(TOLD_FOR)).ok());
        let now = self.clock.now();
        if let Some(told) = told.filter(|told| now < *told) {
            apply_by(&self.term, &self.client, &asking(id, true), "the provider").await?;
            return Ok(Action::RequeueAfter(until(told, now)));
        }
        self.burn(id).await?;
        self.retire(invitation).await
    }

    /// Deletes an invitation that has been over for long.
    async fn retire(&self, invitation: &Invitation) -> Result<Action, TenancyError> {
        let status = invitation.status.clone().unwrap_or_default();
        let ready = conditions::find(&status.conditions, ConditionType::Ready);
        let since = ready.map_or(invitation.spec.expires_at.0, |ready| ready.last_transition_time.0);
        let last = since.max(invitation.spec.expires_at.0).saturating_add(signed(KEPT)).unwrap_or(since);
        let now = self.clock.now();
        if now < last {
            return Ok(Action::RequeueAfter(until(last, now)));
        }
        let name = invitation.metadata.name.clone().unwrap_or_default();
        let api: Api<Invitation> = Api::namespaced(self.client.clone(), NAMESPACE);
        let what = format!("delete Invitation {NAMESPACE}/{name}");
        gone(self.term.call(what, api.delete(&name, &DeleteParams::default())).await)?;
        Ok(Action::AwaitChange)
    }

    /// Takes the account of an invitation and its rights. The Secret goes first: without it the token is worth nothing.
    pub(super) async fn burn(&self, id: &str) -> Result<(), TenancyError> {
        let (account, request) = (names::account(id), names::request(id));
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), NAMESPACE);
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), NAMESPACE);
        let (bindings, roles): (Api<RoleBinding>, Api<Role>) = (
            Api::namespaced(self.client.clone(), NAMESPACE),
            Api::namespaced(self.client.clone(), NAMESPACE),
        );
        let (wide, wide_roles): (Api<ClusterRoleBinding>, Api<ClusterRole>) =
            (Api::all(self.client.clone()), Api::all(self.client.clone()));
        let now = DeleteParams::default();
        let what = |kind: &str, name: &str| format!("delete {kind} {name} of an invitation that is over");
        gone(self.term.call(what("Secret", &account), secrets.delete(&account, &now)).await)?;
        gone(self.term.call(what("ClusterRoleBinding", &request), wide.delete(&request, &now)).await)?;
        gone(self.term.call(what("ClusterRole", &request), wide_roles.delete(&request, &now)).await)?;
        gone(self.term.call(what("RoleBinding", &account), bindings.delete(&account, &now)).await)?;
        gone(self.term.call(what("Role", &account), roles.delete(&account, &now)).await)?;
        gone(self.term.call(what("ServiceAccount", &account), accounts.delete(&account, &now)).await)?;
        let requests: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        let made = what("CertificateSigningRequest", &request);
        gone(self.term.call(made, requests.delete(&request, &now)).await)?;
        Ok(())
    }

    /// Burns what is left of invitations that were deleted while nobody looked.
    pub(super) async fn burn_orphans(&self) -> Result<(), TenancyError> {
        let roles: Api<ClusterRole> = Api::all(self.client.clone());
        let params = ListParams::default().labels(INVITATION_LABEL);
        let list = call("list ClusterRoles of invitations", roles.list_metadata(&params)).await?;
        for role in list.items {
            let id = role.metadata.labels.and_then(|mut labels| labels.remove(INVITATION_LABEL));
            let Some(id) = id.filter(|id| names::is_invitation(id)) else { continue };
            let api: Api<Invitation> = Api::namespaced(self.client.clone(), NAMESPACE);
            if call(format!("read Invitation {NAMESPACE}/{id}"), api.get_metadata_opt(&id)).await?.is_none() {
                self.burn(&id).await?;
            }
        }
        Ok(())
    }
}
