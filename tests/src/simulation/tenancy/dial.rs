//! Connections by what a kubeconfig or an invitation says: to the cluster that the URL names, with a token or a certificate.

use base64::Engine;
use http::header::{AUTHORIZATION, HeaderValue};
use kube::client::Body;
use kube::{Client, Config};
use portolan_control::tenancy::NewKey;
use portolan_runtime::Seed;
use portolan_sandbox::{ClientCertificate, User, World};
use rcgen::KeyPair;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A client of the cluster that a configuration names, with its token or its certificate.
///
/// # Errors
/// No cluster has that name, or what is shown cannot be read.
pub fn by_config(world: &World, party: &str, config: &Config) -> Result<Client, String> {
    let host = config.cluster_url.host().unwrap_or_default().to_owned();
    let cluster = world.cluster(&host).ok_or_else(|| format!("no cluster is called {host}"))?;
    let user = serde_json::to_value(&config.auth_info).map_err(|error| error.to_string())?;
    let pem = |field: &str| -> Option<String> {
        let bytes = base64::prelude::BASE64_STANDARD.decode(user[field].as_str()?).ok()?;
        String::from_utf8(bytes).ok()
    };
    if let (Some(certificate), Some(key)) = (pem("client-certificate-data"), pem("client-key-data")) {
        let shown = ClientCertificate { certificate, key };
        return cluster.client_with(party, &shown).map_err(|error| error.to_string());
    }
    let client = cluster.client_as(party, User::named("system:anonymous"));
    let Some(token) = user["token"].as_str() else { return Ok(client) };
    let value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|error| error.to_string())?;
    let send = tower::service_fn(move |mut request: http::Request<Body>| {
        let (client, value) = (client.clone(), value.clone());
        request.headers_mut().insert(AUTHORIZATION, value);
        async move { client.send(request).await }
    });
    Ok(Client::new(send, "default"))
}

/// Keys that a name stands for: the first, the second and so on.
#[must_use]
pub fn keys(name: &str) -> NewKey {
    let (count, name) = (AtomicU64::new(0), name.to_owned());
    Arc::new(move || {
        use rand::Rng;
        let number = count.fetch_add(1, Ordering::SeqCst);
        let mut secret = [0_u8; 32];
        Seed::new(number).child(&name).rng().fill_bytes(&mut secret);
        let head =
            [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
        KeyPair::try_from([&head[..], &secret[..]].concat())
    })
}
