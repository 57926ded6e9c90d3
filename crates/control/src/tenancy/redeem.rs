//! Using an invitation, as an administrator of the consumer.

use super::TenancyError;
use super::certificate::NewKey;
use super::gone::gone;
use super::held::{Fresh, Held, fresh};
use super::keys::KEY_EXPIRES;
use super::known_provider::refuse_other_provider;
use super::obtain::Obtaining;
use super::part::{config, consumer_lease, kubeconfig_of};
use super::redeeming::Redeeming;
use crate::names::{FIELD_MANAGER, INVITATION_LABEL};
use crate::peering::{
    Address, NAMESPACE, PeerError, apply, check_credential, check_name, declare, identity, in_hub_with,
    install_definitions, make_missing, own_namespace,
};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::DeleteParams;
use kube::{Api, Client};
use portolan_api::foreigncluster::OutgoingPeering;
use portolan_api::{ForeignCluster, PROGRAM_VERSION};
use portolan_core::tenancy::names::{self, Tenant};
use portolan_core::tenancy::{ClockSkew, InvitationLine};
use portolan_core::version::check_skew;
use portolan_runtime::{CallError, Term, call};
use rcgen::KeyPair;
use serde_json::{Value, json};

/// The key of the private key in the Secret of an invitation that is being used.
const KEY: &str = "key.pem";

/// What came of it.
#[derive(Clone, Debug)]
pub struct Redeemed {
    /// The ForeignCluster of the provider.
    pub cluster: ForeignCluster,
    /// The credential: a certificate, or a token where nobody signs certificates.
    pub kind: &'static str,
    /// When the credential ends.
    pub expires: Timestamp,
    /// The namespace of this cluster in the provider.
    pub tenant_namespace: String,
    /// By how much the clocks differ, if that is worth a word.
    pub skew: Option<ClockSkew>,
}

/// Uses an invitation: asks for a certificate, waits for it, and makes the provider a member of this fleet. Interrupted
/// anywhere, the next run with the same line goes on, with the same key.
///
/// # Errors
/// What stands in the way.
pub async fn redeem(
    with: &Redeeming<'_>,
    clock: &(dyn Fn() -> Timestamp + Sync),
    tell: &(dyn Fn(&str) + Sync),
) -> Result<Redeemed, TenancyError> {
    let (hub, line) = (&with.hub, with.line);
    refuse_other_version(line)?;
    let own = identity(hub, "this cluster").await?;
    if own == line.provider.id {
        return Err(PeerError::SameCluster { id: own }.into());
    }
    tell("installing definitions in this cluster");
    install_definitions(hub).await?;
    let exists = check_name(hub, &with.peer.name, &line.provider.id).await?;
    // The provider has chosen the name, unless the user did.
    check_credential(hub, &with.peer.name).await?;
    make_missing(&Term::alone(FIELD_MANAGER), hub, &own_namespace(), "this cluster").await?;
    let tenant = Tenant { cluster: own, invitation: line.invitation.clone() };
    if let Some(done) = go_on(with, &tenant).await? {
        return Ok(done);
    }
    if exists {
        Box::pin(refuse_other_provider(hub, &with.peer.name, line)).await?;
    }
    let key = own_key(hub, line, &with.new_key).await?;
    let address = Address {
        server: line.server.clone(),
        authority: line.authority.clone(),
        tls_server_name: line.tls_server_name.clone(),
        given: true,
        ..Address::default()
    };
    let bootstrap = dial(with, &address, json!({ "token": line.token }))?;
    let obtaining = Obtaining::new(with, &bootstrap, &tenant, &key)?;
    tell(&format!("asking {} for a certificate of key {}", line.server, obtaining.fingerprint()));
    let issued = match obtaining.certificate(clock, tell).await {
        Ok(answered) => answered,
        Err(error) => {
            if is_final(&error) {
                forget_key(hub, &line.invitation).await?;
            }
            return Err(error);
        }
    };
    tell("trying the credential");
    let home = (issued.tenant_namespace.as_str(), with.lifetime);
    let connect = |user: Value| dial(with, &address, user);
    let Fresh { held, user, client } = fresh(&issued.handed, &tenant, &key, home, clock(), &connect).await?;
    tell("writing the credential in this cluster");
    let kubeconfig = address.kubeconfig_with(&with.peer.name, user);
    let text = serde_json::to_string_pretty(&kubeconfig)
        .map_err(|source| PeerError::Encode { what: "the kubeconfig", source })?;
    let secret = in_hub_with(&with.peer.name, &text, held.annotations(), &address);
    apply(hub, &secret, "this cluster").await?;
    let outgoing = OutgoingPeering {
        tenant_namespace: issued.tenant_namespace.clone(),
        placement: issued.placement,
        sees_cluster: issued.sees_cluster,
        ..OutgoingPeering::default()
    };
    let cluster =
        declare(&Term::alone(FIELD_MANAGER), hub, &with.peer, &line.provider.id, exists, Some(&outgoing))
            .await?;
    tell("telling the provider that the credential is here");
    announce(&client, &tenant, &issued.tenant_namespace, &with.own_name).await?;
    forget_key(hub, &line.invitation).await?;
    Ok(Redeemed {
        cluster,
        kind: held.kind(),
        expires: held.expires(),
        tenant_namespace: issued.tenant_namespace,
        skew: issued.skew,
    })
}

/// Refuses a line of a version that is too far from this one, before anything is made.
fn refuse_other_version(line: &InvitationLine) -> Result<(), TenancyError> {
    let Some(theirs) = &line.program else { return Ok(()) };
    check_skew(theirs, PROGRAM_VERSION).map_err(|_| TenancyError::Skew {
        invitation: line.invitation.clone(),
        provider: line.provider.name.clone(),
        theirs: theirs.clone(),
        own: PROGRAM_VERSION.to_owned(),
    })
}

/// What an earlier run with the same line has done already, if it came as far as the ForeignCluster: the provider is told once
/// more, since that may have been missed.
async fn go_on(with: &Redeeming<'_>, tenant: &Tenant) -> Result<Option<Redeemed>, TenancyError> {
    let (hub, name) = (&with.hub, &with.peer.name);
    let secrets: Api<Secret> = Api::namespaced(hub.clone(), NAMESPACE);
    let clusters: Api<ForeignCluster> = Api::all(hub.clone());
    let secret = call(format!("read Secret {NAMESPACE}/{name}"), secrets.get_opt(name)).await?;
    let cluster = call(format!("read ForeignCluster {name}"), clusters.get_opt(name)).await?;
    let (Some(secret), Some(cluster)) = (secret, cluster) else { return Ok(None) };
    let annotations = secret.metadata.annotations.clone().unwrap_or_default();
    let held = Held::read(&annotations).filter(|held| held.user() == tenant.user());
    let (Some(held), Some(outgoing)) = (held, cluster.spec.outgoing.clone()) else { return Ok(None) };
    let kubeconfig = kubeconfig_of(&secret)?;
    let unusable = |why: String| TenancyError::Key { what: "connection to the provider", why };
    let client = config(&kubeconfig).and_then(|config| (with.dial)(config)).map_err(unusable)?;
    announce(&client, tenant, &outgoing.tenant_namespace, &with.own_name).await?;
    forget_key(hub, &tenant.invitation).await?;
    let (kind, expires, tenant_namespace) = (held.kind(), held.expires(), outgoing.tenant_namespace);
    Ok(Some(Redeemed { cluster, kind, expires, tenant_namespace, skew: None }))
}

fn dial(with: &Redeeming<'_>, address: &Address, user: Value) -> Result<Client, TenancyError> {
    let unusable = |why: String| TenancyError::Key { what: "connection to the provider", why };
    let kubeconfig = address.kubeconfig_with("provider", user);
    let config = config(&kubeconfig).map_err(unusable)?;
    (with.dial)(config).map_err(unusable)
}

/// The key of an invitation that is being used: the same in every run.
async fn own_key(hub: &Client, line: &InvitationLine, new_key: &NewKey) -> Result<KeyPair, TenancyError> {
    let wrong = |why: String| TenancyError::Key { what: "key", why };
    let (invitation, name) = (&line.invitation, names::account(&line.invitation));
    let secrets: Api<Secret> = Api::namespaced(hub.clone(), NAMESPACE);
    let read = |secret: &Secret| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(KEY)).map(|bytes| bytes.0.clone());
        let text = String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default();
        KeyPair::from_pem(&text)
            .map_err(|error| wrong(format!("Secret {NAMESPACE}/{name} holds none: {error}")))
    };
    if let Some(found) = call(format!("read Secret {NAMESPACE}/{name}"), secrets.get_opt(&name)).await? {
        let labels = found.metadata.labels.as_ref();
        if labels.and_then(|labels| labels.get(INVITATION_LABEL)).is_none_or(|label| label != invitation) {
            let help = "the key of the invitation would have that name: delete it if nobody needs it, or ask for another invitation";
            let object = format!("Secret {NAMESPACE}/{name}");
            return Err(PeerError::NotOurs { object, help: help.to_owned() }.into());
        }
        return read(&found);
    }
    let key = new_key().map_err(|error| wrong(error.to_string()))?;
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {
            "name": name, "namespace": NAMESPACE, "labels": { INVITATION_LABEL: invitation },
            "annotations": { KEY_EXPIRES: line.expires.to_string() },
        },
        "data": { KEY: BASE64_STANDARD.encode(key.serialize_pem()) },
    }))
    .map_err(|source| PeerError::Encode { what: "the Secret of the key", source })?;
    match call(format!("create Secret {NAMESPACE}/{name}"), secrets.create(&Default::default(), &secret))
        .await
    {
        // Another run of the same command was faster: its key counts.
        Err(error) if error.is_conflict() => {
            read(&call(format!("read Secret {NAMESPACE}/{name}"), secrets.get(&name)).await?)
        }
        other => other.map(|_| key).map_err(Into::into),
    }
}

/// Whether nothing comes of an invitation any more, so that its key is of no use.
fn is_final(error: &TenancyError) -> bool {
    matches!(
        error,
        TenancyError::Refused { .. }
            | TenancyError::Expired { .. }
            | TenancyError::OtherKey { .. }
            | TenancyError::NotAccepted { .. }
    )
}

async fn forget_key(hub: &Client, invitation: &str) -> Result<(), CallError> {
    let name = names::account(invitation);
    let secrets: Api<Secret> = Api::namespaced(hub.clone(), NAMESPACE);
    let what = format!("delete Secret {NAMESPACE}/{name}");
    gone(call(what, secrets.delete(&name, &DeleteParams::default())).await)
}

/// Says in the tenant's namespace that the credential is here, by the credential itself: the provider then ends the invitation.
async fn announce(
    provider: &Client,
    tenant: &Tenant,
    namespace: &str,
    own_name: &str,
) -> Result<(), TenancyError> {
    let mut lease = consumer_lease(&tenant.user(), namespace);
    lease["metadata"]["annotations"] = json!({ super::certificate::CLUSTER_NAME: own_name });
    apply(provider, &lease, "the provider").await?;
    Ok(())
}
