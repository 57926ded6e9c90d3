//! A provider in which nobody signs certificates for clients gives its tenant a service account, and hands its first token to
//! the consumer, sealed.

use super::TenancyError;
use super::context::Provider;
use super::declared::declared;
use super::gone::gone;
use super::login::{BY_TOKEN, Login, account};
use super::objects::{Whose, whose};
use super::policy::{TENANT_POLICY, bounds_accounts};
use super::sealed::{annotations, stated};
use crate::names::{FIELD_MANAGER, TENANT_LOGIN_ANNOTATION};
use crate::peering::{apply_by, if_same, request_token};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::Reason;
use portolan_core::tenancy::NoToken;
use portolan_core::tenancy::names::{TENANT_ACCOUNT, Tenant, tenant_account_user, tenant_namespace};
use portolan_runtime::{CallError, call};
use serde_json::json;

/// For how many seconds the first token is valid: the consumer asks for the next one by it, at once.
const FIRST_LIFE: i64 = 3600;

impl Provider {
    /// How the tenant of a ForeignCluster signs in.
    pub(super) async fn login(&self, cluster: &str) -> Result<Login, CallError> {
        Ok(self.cluster(cluster).await?.map_or(Login::Certificate, |found| found.login()))
    }

    /// Whether the consumer of a request can have a token: it has stated for which key, and the policy of tenants bounds
    /// service accounts too.
    pub(super) async fn may_have_token(
        &self,
        invitation: &str,
        request: &CertificateSigningRequest,
        key_digest: Option<&str>,
    ) -> Result<Result<(), NoToken>, CallError> {
        if let Err(why) = stated(request, invitation, key_digest) {
            return Ok(Err(why));
        }
        let policies: Api<ValidatingAdmissionPolicy> = Api::all(self.client.clone());
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(self.client.clone());
        let what = format!("read ValidatingAdmissionPolicy {TENANT_POLICY}");
        let policy = call(what, policies.get_opt(TENANT_POLICY)).await?;
        let what = format!("read ValidatingAdmissionPolicyBinding {TENANT_POLICY}");
        let binding = call(what, bindings.get_opt(TENANT_POLICY)).await?;
        let bounded = bounds_accounts(&json!(policy), &json!(binding));
        Ok(if bounded { Ok(()) } else { Err(NoToken::Unbounded { policy: TENANT_POLICY }) })
    }

    /// From now on the tenant signs in by a token. The account is made before that is noted: one that is missing later was
    /// deleted by somebody, and is not made again.
    pub(super) async fn sign_in_by_token(&self, cluster: &str, tenant: &Tenant) -> Result<(), TenancyError> {
        let Some(found) = self.cluster(cluster).await?.filter(|found| found.stands_for(&tenant.user()))
        else {
            return Ok(());
        };
        apply_by(&self.term, &self.client, &account(cluster, tenant), "the provider").await?;
        let patch = Patch::Merge(json!({
            "metadata": {
                "resourceVersion": found.meta().resource_version,
                "annotations": { TENANT_LOGIN_ANNOTATION: BY_TOKEN },
            },
        }));
        let what = format!("note in ForeignCluster {cluster} that its tenant signs in by a token");
        self.term.call(what, declared(&self.client).patch(cluster, &fields(), &patch)).await?;
        Ok(())
    }

    /// Makes a token for a tenant, and writes it on the request of its consumer, sealed for it alone.
    pub(super) async fn hand_token(
        &self,
        cluster: &str,
        invitation: &str,
        request: &CertificateSigningRequest,
        key_digest: Option<&str>,
    ) -> Result<Result<(), NoToken>, TenancyError> {
        let key = match stated(request, invitation, key_digest) {
            Ok(key) => key,
            Err(why) => return Ok(Err(why)),
        };
        let (home, now) = (tenant_namespace(cluster), self.clock.now());
        let (token, facts) = request_token(&self.client, &home, TENANT_ACCOUNT, FIRST_LIFE, now).await?;
        let sealed = match key.seal(invitation, &token) {
            Ok(sealed) => sealed,
            Err(error) => return Ok(Err(NoToken::Unusable(error.to_string()))),
        };
        let name = request.metadata.name.clone().unwrap_or_default();
        // Not on one that has taken its place.
        let patch = Patch::Merge(json!({
            "metadata": {
                "resourceVersion": request.metadata.resource_version,
                "annotations": annotations(&sealed, facts.expires),
            },
        }));
        let requests: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        let what = format!("write the encrypted token on CertificateSigningRequest {name}");
        self.term.call(what, requests.patch(&name, &fields(), &patch)).await?;
        Ok(Ok(()))
    }

    /// Whether the account of a tenant is there.
    pub(super) async fn has_account(&self, cluster: &str) -> Result<bool, CallError> {
        let home = tenant_namespace(cluster);
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &home);
        let what = format!("look for ServiceAccount {home}/{TENANT_ACCOUNT}");
        Ok(call(what, accounts.get_metadata_opt(TENANT_ACCOUNT)).await?.is_some())
    }

    /// Deletes the account of a tenant, if it is that one's: all its tokens are worth nothing from then on.
    pub(super) async fn revoke_account(
        &self,
        cluster: &str,
        tenant: Option<&Tenant>,
    ) -> Result<(), CallError> {
        let home = tenant_namespace(cluster);
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &home);
        let what = format!("look for ServiceAccount {home}/{TENANT_ACCOUNT}");
        let Some(found) = call(what, accounts.get_metadata_opt(TENANT_ACCOUNT)).await? else { return Ok(()) };
        if tenant.is_some_and(|tenant| whose(&found.metadata, cluster, tenant) != Whose::Its) {
            return Ok(());
        }
        let what = format!("delete ServiceAccount {home}/{TENANT_ACCOUNT}");
        gone(self.term.call(what, accounts.delete(TENANT_ACCOUNT, &if_same(&found.metadata))).await)
    }
}

/// How the peering stands with a tenant whose account somebody has deleted.
pub(super) fn revoked(cluster: &str) -> (bool, Reason, String) {
    let account = tenant_account_user(&tenant_namespace(cluster));
    let message = format!(
        "the service account of its tenant, {account}, does not exist: whoever deleted it has revoked all its tokens; \
         `portolan unpeer {cluster}`, then `portolan invite` again"
    );
    (false, Reason::PeeringRevoked, message)
}

fn fields() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}
