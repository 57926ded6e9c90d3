//! A line that names the identity of a member: its credential is replaced only by one of the same cluster.

use super::TenancyError;
use crate::peering::der_of;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::config::Kubeconfig;
use kube::{Api, Client};
use portolan_api::ForeignCluster;
use portolan_core::tenancy::{InvitationLine, KnownServer};
use portolan_runtime::call;

/// Refuses a line that says that it is of a member, and leads to an API server that may be another one.
///
/// The identity in a line is what whoever has made it says; other clusters learn it. So a member that has a credential stays
/// what it is, unless the line is signed for by the same authority.
pub(super) async fn refuse_other_provider(
    hub: &Client,
    name: &str,
    line: &InvitationLine,
) -> Result<(), TenancyError> {
    let clusters: Api<ForeignCluster> = Api::all(hub.clone());
    let cluster = call(format!("read ForeignCluster {name}"), clusters.get_opt(name)).await?;
    let credentials = cluster.and_then(|cluster| cluster.spec.credentials);
    let Some(reference) = credentials.map(|credentials| credentials.secret_ref) else { return Ok(()) };
    let place = format!("{}/{}", reference.namespace, reference.name);
    let secrets: Api<Secret> = Api::namespaced(hub.clone(), &reference.namespace);
    let secret = call(format!("read Secret {place}"), secrets.get_opt(&reference.name)).await?;
    // Without a credential there is none to replace.
    let text = secret.and_then(|secret| secret.data?.remove(&reference.key));
    let Some(text) = text.and_then(|bytes| String::from_utf8(bytes.0).ok()) else { return Ok(()) };
    let line_server = line.server.clone();
    let refused = |known: String| TenancyError::OtherProvider {
        name: name.to_owned(),
        known,
        server: line_server.clone(),
    };
    let Some(known) = server_of(&text) else { return Err(refused(format!("Secret {place}"))) };
    let authorities = match &line.authority {
        Some(authority) => {
            decoded(authority).map_err(|why| TenancyError::Key { what: "connection to the provider", why })?
        }
        None => Vec::new(),
    };
    let claimed = KnownServer { server: line.server.clone(), authorities };
    if known.vouches_for(&claimed) { Ok(()) } else { Err(refused(known.server)) }
}

/// The API server of a kubeconfig; nothing if it is not known what it is known by.
fn server_of(kubeconfig: &str) -> Option<KnownServer> {
    let read = Kubeconfig::from_yaml(kubeconfig).ok()?;
    let context = read.current_context.as_ref()?;
    let context = read.contexts.iter().find(|each| each.name == *context)?.context.as_ref()?;
    let cluster = read.clusters.iter().find(|each| each.name == context.cluster)?.cluster.as_ref()?;
    let authorities = match &cluster.certificate_authority_data {
        Some(authority) => decoded(authority).ok()?,
        None => Vec::new(),
    };
    Some(KnownServer { server: cluster.server.clone()?, authorities })
}

/// The certificates of authorities in PEM in base64.
fn decoded(authority: &str) -> Result<Vec<Vec<u8>>, String> {
    let pem = BASE64_STANDARD.decode(authority).map_err(|_| "its authority is not base64".to_owned())?;
    der_of(&pem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peering::Address;
    use serde_json::json;

    #[test]
    fn what_peering_writes_is_read_back() {
        let address = Address { server: "https://paris:6443".to_owned(), ..Address::default() };
        let text = address.kubeconfig_with("paris", json!({"token": "x"})).to_string();
        let known = KnownServer { server: "https://paris:6443".to_owned(), authorities: Vec::new() };
        assert_eq!(server_of(&text), Some(known));
        assert_eq!(server_of("nothing: [of"), None);
        assert_eq!(server_of("{}"), None);
    }
}
