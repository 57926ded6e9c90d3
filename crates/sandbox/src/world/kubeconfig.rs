//! Kubeconfigs that name clusters of a world, and clients made from them without sockets.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use http::{HeaderValue, Request, Uri, header};
use kube::client::Body;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{Cluster, World};
use crate::pki::CertificateError;

/// The port that API servers say they listen on.
const PORT: u16 = 6443;

/// Why a kubeconfig leads to no cluster of the world.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// It cannot be read.
    #[error("the kubeconfig is not valid YAML: {0}")]
    NotYaml(String),
    /// Something is missing that is needed.
    #[error("the kubeconfig has no {0}, or one that cannot be used")]
    Missing(&'static str),
    /// No cluster answers at that address.
    #[error("the kubeconfig names server {0}, and the world has no cluster of that name")]
    NoSuchCluster(String),
}

impl Cluster {
    /// The administrator's kubeconfig. Its server is `https://<name of the cluster>:6443`, which [`World::connect`]
    /// understands; no socket is opened.
    pub fn kubeconfig(&self) -> Result<Value, CertificateError> {
        let api = self.server.api();
        let authority = api.authority().map_err(|error| CertificateError::Text(error.to_string()))?;
        let (name, admin) = (self.name(), format!("{}-admin", self.name()));
        let context = format!("{admin}@{name}");
        let server = format!("https://{name}:{PORT}");
        let cluster = json!({"server": server, "certificate-authority-data": BASE64.encode(authority.pem())});
        Ok(json!({
            "apiVersion": "v1",
            "kind": "Config",
            "preferences": {},
            "current-context": context,
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": admin, "user": {"token": api.admin_token()}}],
            "contexts": [{"name": context, "context": {"cluster": name, "user": admin}}],
        }))
    }
}

impl World {
    /// A client for `party` of the cluster that a kubeconfig names: the host of its server is the name of the cluster,
    /// and the caller is whoever its token belongs to.
    pub fn connect(&self, party: &str, kubeconfig: &str) -> Result<kube::Client, ConnectionError> {
        let config: Value = serde_saphyr::from_str(kubeconfig)
            .map_err(|error| ConnectionError::NotYaml(error.to_string()))?;
        let current =
            config.pointer("/current-context").ok_or(ConnectionError::Missing("current-context"))?;
        let context = entry(&config, "contexts", current).ok_or(ConnectionError::Missing("context"))?;
        let named =
            |list: &str, kind: &str| entry(&config, list, context.pointer(&format!("/context/{kind}"))?);
        let cluster = named("clusters", "cluster").ok_or(ConnectionError::Missing("cluster"))?;
        let user = named("users", "user").ok_or(ConnectionError::Missing("user"))?;
        let server = cluster.pointer("/cluster/server").and_then(Value::as_str);
        let server: Option<Uri> = server.and_then(|server| server.parse().ok());
        let host = server.as_ref().and_then(Uri::host).ok_or(ConnectionError::Missing("server"))?;
        let token = user.pointer("/user/token").and_then(Value::as_str);
        let token = token.and_then(|token| HeaderValue::from_str(&format!("Bearer {token}")).ok());
        let token = token.ok_or(ConnectionError::Missing("token"))?;
        let found = self.cluster(host).ok_or_else(|| ConnectionError::NoSuchCluster(host.to_owned()))?;
        let service = found.service(party, None).map_request(move |mut request: Request<Body>| {
            request.headers_mut().insert(header::AUTHORIZATION, token.clone());
            request
        });
        Ok(kube::Client::new(service, "default"))
    }
}

/// The entry of that name in a list of the kubeconfig.
fn entry<'a>(config: &'a Value, list: &str, name: &Value) -> Option<&'a Value> {
    config.get(list)?.as_array()?.iter().find(|entry| entry.get("name") == Some(name))
}
