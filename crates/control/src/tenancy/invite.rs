//! Making an invitation, as an administrator of the provider.

use super::TenancyError;
use super::declared::all_declared;
use super::objects::{asking, bootstrap};
use super::policy::tenant_policy;
use super::rights::holder_of;
use super::roles::provider_roles;
use crate::names::{FIELD_MANAGER, INVITATION_LABEL};
use crate::peering::{
    Address, NAMESPACE, PeerError, apply, identity, install_roles, make_missing, of_this_version, open,
    own_namespace,
};
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use portolan_api::invitation::Acceptance;
use portolan_api::sharing::Sharing;
use portolan_api::{Invitation, InvitationSpec, PROGRAM_VERSION};
use portolan_core::tenancy::names::{self, INVITATION_LENGTH, INVITATION_LETTERS};
use portolan_core::tenancy::{InvitationLine, ProviderIdentity};
use portolan_runtime::{Term, call};
use serde_json::{Value, json};

/// API servers make no token of less than ten minutes. One that lives longer than its invitation is revoked with it.
const SHORTEST_TOKEN: i64 = 600;

/// What the administrator says.
#[derive(Clone, Debug)]
pub struct Inviting {
    /// What the provider is called by its consumers.
    pub provider: String,
    /// What the consumer is called here; otherwise what it calls itself.
    pub consumer: Option<String>,
    /// The namespaces in which it may place workloads.
    pub namespaces: Vec<String>,
    /// Whether it sees nodes, and pods and workloads in all namespaces.
    pub sees_cluster: bool,
    /// What is shared with it; otherwise what the default SharingClass says.
    pub sharing: Option<Sharing>,
    /// Whether it waits to be accepted.
    pub acceptance: Acceptance,
    /// When the invitation ends.
    pub expires: Timestamp,
    /// How consumers reach the API server.
    pub address: Address,
    /// What the name of the invitation is made of; it need not be secret, and must not repeat.
    pub random: [u8; INVITATION_LENGTH],
}

/// Makes an invitation. The definitions must be installed.
///
/// # Errors
/// The cluster refused, or does not answer. What was made until then ends with the invitation.
pub async fn invite(
    cluster: &Client,
    inviting: &Inviting,
    now: Timestamp,
) -> Result<InvitationLine, TenancyError> {
    let id = identity(cluster, "the provider").await?;
    let mut clusters = all_declared(cluster).await?;
    // Who comes may be the one that has it: if nobody is named, that is seen when it comes.
    clusters.retain(|each| {
        let other = inviting.consumer.as_ref().is_some_and(|consumer| *consumer != each.name());
        other && !each.is_leaving()
    });
    if let Some((namespace, holder)) = holder_of(cluster, &clusters, &inviting.namespaces, "").await? {
        return Err(TenancyError::NamespaceTaken { namespace, holder });
    }
    let place = "the provider";
    make_missing(&Term::alone(FIELD_MANAGER), cluster, &own_namespace(), place).await?;
    let objects = tenant_policy().into_iter().chain(provider_roles());
    let objects: Vec<Value> = objects.map(of_this_version).collect();
    install_roles(cluster, &objects, place).await?;
    let letter = |byte: &u8| char::from(INVITATION_LETTERS[usize::from(*byte) % INVITATION_LETTERS.len()]);
    let name: String = inviting.random.iter().map(letter).collect();
    let made = create(cluster, inviting, &name).await?;
    // After what the API server may refuse; nobody can come before the token is made.
    for namespace in &inviting.namespaces {
        open(cluster, namespace, &id, place).await?;
    }
    let owner = json!({
        "apiVersion": portolan_api::API_VERSION, "kind": "Invitation", "name": name,
        "uid": made.metadata.uid.unwrap_or_default(),
    });
    apply(cluster, &asking(&name, false), place).await?;
    let mut secret_uid = None;
    for object in bootstrap(&name, &owner) {
        let applied = apply(cluster, &object, place).await?;
        if object["kind"] == "Secret" {
            secret_uid = applied.metadata.uid;
        }
    }
    let token = token(cluster, &name, secret_uid, inviting.expires, now).await?;
    let provider = ProviderIdentity { id, name: inviting.provider.clone() };
    let server = inviting.address.server.clone();
    let mut line = InvitationLine::new(server, name, token, inviting.expires, provider);
    line.authority.clone_from(&inviting.address.authority);
    line.tls_server_name.clone_from(&inviting.address.tls_server_name);
    line.program = Some(PROGRAM_VERSION.to_owned());
    Ok(line)
}

async fn create(cluster: &Client, inviting: &Inviting, name: &str) -> Result<Invitation, TenancyError> {
    let api: Api<Invitation> = Api::namespaced(cluster.clone(), NAMESPACE);
    let spec = InvitationSpec {
        expires_at: Time(inviting.expires),
        consumer: inviting.consumer.clone(),
        namespaces: inviting.namespaces.clone(),
        sees_cluster: inviting.sees_cluster,
        sharing: inviting.sharing.clone(),
        acceptance: inviting.acceptance,
        accepted: false,
    };
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(NAMESPACE.to_owned()),
        labels: Some([(INVITATION_LABEL.to_owned(), name.to_owned())].into()),
        ..ObjectMeta::default()
    };
    let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let object = Invitation { metadata, spec, status: None };
    Ok(call(format!("create Invitation {NAMESPACE}/{name}"), api.create(&params, &object)).await?)
}

/// The bootstrap token. It is bound to a Secret: deleting that revokes it at once.
async fn token(
    cluster: &Client,
    name: &str,
    secret_uid: Option<String>,
    expires: Timestamp,
    now: Timestamp,
) -> Result<String, TenancyError> {
    let account = names::account(name);
    let seconds = expires.duration_since(now).as_secs().max(SHORTEST_TOKEN);
    let bound = BoundObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Secret".to_owned()),
        name: Some(account.clone()),
        uid: secret_uid,
    };
    let spec = TokenRequestSpec {
        expiration_seconds: Some(seconds),
        bound_object_ref: Some(bound),
        ..TokenRequestSpec::default()
    };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.clone(), NAMESPACE);
    let what = format!("make a token of service account {NAMESPACE}/{account}");
    let made = call(what, accounts.create_token_request(&account, &PostParams::default(), &request)).await?;
    let token = made.status.and_then(|status| status.token).filter(|token| !token.is_empty());
    Ok(token.ok_or(PeerError::NoToken { account: format!("{NAMESPACE}/{account}") })?)
}
