//! A consumer ends the peering.

use super::TenancyError;
use super::held::Held;
use super::redeeming::DialOnce;
use super::tenant::LEAVING;
use crate::names::{FIELD_MANAGER, TENANT_LABEL};
use crate::peering::{NAMESPACE, PeerError, SECRET_KEY};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use portolan_api::ForeignCluster;
use portolan_core::tenancy::names::{LEASE, tenant_namespace};
use portolan_runtime::call;
use serde_json::{Value, json};

/// Says in the namespace of this cluster in a provider that the peering ends: the provider then removes what it has of this
/// cluster. Answers nothing if it is no provider that this cluster is a tenant of, and otherwise whether it was heard; it is
/// not if the provider has ended the peering already.
///
/// # Errors
/// The provider does not answer. What it has stays until somebody ends the peering there.
pub async fn tell_provider(
    hub: &Client,
    name: &str,
    dial: DialOnce<'_>,
) -> Result<Option<bool>, TenancyError> {
    let clusters: Api<ForeignCluster> = Api::all(hub.clone());
    let cluster = call(format!("read ForeignCluster {name}"), clusters.get_opt(name)).await?;
    let Some(outgoing) = cluster.and_then(|cluster| cluster.spec.outgoing) else { return Ok(None) };
    let secrets: Api<Secret> = Api::namespaced(hub.clone(), NAMESPACE);
    let secret = call(format!("read Secret {NAMESPACE}/{name}"), secrets.get_opt(name)).await?;
    let Some(secret) = secret else { return Ok(Some(false)) };
    let held = Held::read(&secret.metadata.annotations.clone().unwrap_or_default());
    let Some(held) = held else { return Ok(None) };
    let unusable = |why: String| TenancyError::Key { what: "connection to the provider", why };
    let provider = config(&kubeconfig_of(&secret)?).and_then(dial).map_err(unusable)?;
    let namespace = &outgoing.tenant_namespace;
    let leases: Api<Lease> = Api::namespaced(provider, namespace);
    // Somebody may have deleted it.
    let mut lease = consumer_lease(held.user(), namespace);
    lease["metadata"]["annotations"] = json!({ LEAVING: "true" });
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let what = format!("say in Lease {namespace}/{LEASE} of the provider that the peering ends");
    match call(what, leases.patch(LEASE, &params, &Patch::Apply(&lease))).await {
        Ok(_) => Ok(Some(true)),
        Err(error) if matches!(error.code(), Some(401 | 403 | 404)) => Ok(Some(false)),
        Err(error) => Err(error.into()),
    }
}

/// The Lease by which a consumer speaks to its provider.
pub(super) fn consumer_lease(user: &str, namespace: &str) -> Value {
    let foreign_cluster = namespace.strip_prefix(&tenant_namespace("")).unwrap_or_default();
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": LEASE, "namespace": namespace, "labels": { TENANT_LABEL: foreign_cluster } },
        "spec": { "holderIdentity": user },
    })
}

/// The kubeconfig in a Secret that an invitation has made.
pub(super) fn kubeconfig_of(secret: &Secret) -> Result<Value, PeerError> {
    let bytes = secret.data.as_ref().and_then(|data| data.get(SECRET_KEY));
    let bytes = bytes.map(|bytes| bytes.0.as_slice()).unwrap_or_default();
    serde_json::from_slice(bytes).map_err(|source| PeerError::Encode { what: "the kubeconfig", source })
}

/// The configuration of a kubeconfig that stands alone.
pub(super) fn config(kubeconfig: &Value) -> Result<kube::Config, String> {
    let text = |pointer: &str| kubeconfig.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let server = text("/clusters/0/cluster/server").unwrap_or_default();
    let mut config = kube::Config::new(server.parse().map_err(|_| format!("{server} is not a URL"))?);
    config.tls_server_name = text("/clusters/0/cluster/tls-server-name");
    if let Some(authority) = text("/clusters/0/cluster/certificate-authority-data") {
        let pem = BASE64_STANDARD.decode(authority).map_err(|_| "its authority is not base64".to_owned())?;
        config.root_cert = Some(crate::peering::der_of(&pem)?);
    }
    let user = kubeconfig["users"][0]["user"].clone();
    config.auth_info = serde_json::from_value(user).map_err(|error| error.to_string())?;
    Ok(config)
}
