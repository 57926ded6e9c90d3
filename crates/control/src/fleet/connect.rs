//! From a ForeignCluster to a client of that cluster.

use super::bearer::Bearer;
use super::bounded::{bounded, bounded_client};
use super::connect_error::ConnectError;
use super::credential::Credential;
use super::switch::Switch;
use super::token_claims::TokenClaims;
use super::transport::over_the_network;
use super::validity::Validity;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Secret;
use kube::config::KubeConfigOptions;
use kube::{Api, Client, Config};
use portolan_api::ForeignCluster;
use portolan_api::foreigncluster::{ClusterType, SecretKeyRef};
use portolan_runtime::call;
use portolan_runtime::metrics::RequestCounts;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a changed credential means for the connection that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// It goes on, with a new token if there is one.
    Open,
    /// Another connection is needed: the address, the authority or the kind of credential has changed.
    Outdated,
}

/// Makes clients for members. Production reads credentials from Secrets; a sandbox hands out in-process clients.
pub trait Connect: Send + Sync + 'static {
    /// A client for the cluster that the ForeignCluster stands for.
    fn connect<'a>(&'a self, cluster: &'a ForeignCluster) -> BoxFuture<'a, Result<Client, ConnectError>>;

    /// A client of its own, for requests beside those of the connection that is open, and untouched by it.
    fn connect_apart<'a>(
        &'a self,
        cluster: &'a ForeignCluster,
    ) -> BoxFuture<'a, Result<Client, ConnectError>> {
        self.connect(cluster)
    }

    /// Takes note that the Secret of a cluster that is connected has changed; `version` is its resourceVersion.
    fn refresh<'a>(
        &'a self,
        cluster: &'a ForeignCluster,
        version: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Refreshed, ConnectError>> {
        let _ = (cluster, version);
        Box::pin(async { Ok(Refreshed::Open) })
    }

    /// The resourceVersion of the Secret that the open connection to this cluster uses now, if it uses one.
    fn credential_version(&self, cluster: &str) -> Option<String> {
        let _ = cluster;
        None
    }

    /// The URL of the API server that the open connection to this cluster leads to, if it leads over a network.
    fn server(&self, cluster: &str) -> Option<String> {
        let _ = cluster;
        None
    }

    /// From when to when the credential is valid that the open connection to this cluster uses, if it has an end.
    fn credential_validity(&self, cluster: &str) -> Option<Validity> {
        let _ = cluster;
        None
    }
}

/// How a configuration without a token becomes a client, on whose requests the token is put if there is one.
pub type Dial = Arc<dyn Fn(Config, Option<&Bearer>) -> Result<Client, String> + Send + Sync>;

/// What the hub works with in a member, for those who look whether it does.
pub struct Access {
    /// How its API server is reached, without the token.
    pub config: Config,
    /// A client with the token.
    pub client: Client,
    /// The token, if the credential is one.
    token: Option<String>,
}

impl Access {
    /// Takes it from the Secret that a ForeignCluster names.
    ///
    /// # Errors
    /// Why no connection is made with it; never a part of its content.
    pub async fn from_secret(secret: &Secret, reference: &SecretKeyRef) -> Result<Self, ConnectError> {
        let Credential { kubeconfig, token, .. } = Credential::read(secret, reference)?;
        let refused = |error: String| unusable(reference, error);
        let bearer =
            token.as_deref().map(Bearer::new).transpose().map_err(|error| refused(error.to_string()))?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|error| refused(error.to_string()))?;
        let client = over_the_network(config.clone(), bearer.as_ref()).map_err(refused)?;
        Ok(Self { config, client: bounded_client(client), token })
    }

    /// What the token says of itself, unchecked; nothing if it is no JSON Web Token.
    #[must_use]
    pub fn claims(&self) -> Option<TokenClaims> {
        TokenClaims::read(self.token.as_deref()?)
    }
}

/// Connects by the kubeconfig in the Secret that the ForeignCluster names, or to the hub itself if it is local.
pub struct Credentials {
    hub: Client,
    dial: Dial,
    /// By name of the ForeignCluster: what its open connection uses.
    open: Mutex<BTreeMap<String, Open>>,
    requests: RequestCounts,
}

/// What an open connection uses.
struct Open {
    server: String,
    bearer: Option<Bearer>,
    switch: Switch,
    certificate: Option<String>,
    made_of: String,
    version: Option<String>,
    validity: Option<Validity>,
}

impl Credentials {
    /// Reads Secrets from this hub, and connects over the network.
    #[must_use]
    pub fn from_hub(hub: Client) -> Self {
        Self::dialling(hub, Arc::new(over_the_network))
    }

    /// Reads Secrets from this hub, and connects as `dial` does.
    #[must_use]
    pub fn dialling(hub: Client, dial: Dial) -> Self {
        Self { hub, dial, open: Mutex::default(), requests: RequestCounts::default() }
    }

    /// The same; requests to members are counted there.
    #[must_use]
    pub fn counting(self, requests: RequestCounts) -> Self {
        Self { requests, ..self }
    }

    async fn client_apart(&self, cluster: &ForeignCluster) -> Result<Client, ConnectError> {
        match reference(cluster)? {
            None => Ok(self.hub.clone()),
            Some(reference) => {
                let credential = self.read(reference).await?;
                let (client, _) = self.dial(&name(cluster), reference, credential).await?;
                Ok(client)
            }
        }
    }

    async fn client(&self, cluster: &ForeignCluster) -> Result<Client, ConnectError> {
        let Some(reference) = reference(cluster)? else { return Ok(self.hub.clone()) };
        let credential = self.read(reference).await?;
        let (client, open) = self.dial(&name(cluster), reference, credential).await?;
        self.open().insert(name(cluster), open);
        Ok(client)
    }

    async fn look_again(
        &self,
        cluster: &ForeignCluster,
        version: Option<&str>,
    ) -> Result<Refreshed, ConnectError> {
        let Some(reference) = reference(cluster)? else { return Ok(Refreshed::Open) };
        let name = name(cluster);
        let known = self.open().get(&name).and_then(|open| open.version.clone());
        if version.is_some() && known.as_deref() == version {
            return Ok(Refreshed::Open);
        }
        let credential = self.read(reference).await?;
        let shown = self.open().get(&name).map(|open| open.certificate.clone()).unwrap_or_default();
        let renewed =
            if shown.is_some() && credential.certificate.is_some() && shown != credential.certificate {
                Some(self.dial(&name, reference, credential.clone()).await?)
            } else {
                None
            };
        let mut all = self.open();
        let Some(open) = all.get_mut(&name).filter(|open| open.made_of == credential.made_of) else {
            return Ok(Refreshed::Outdated);
        };
        if let Some((_, fresh)) = renewed {
            open.switch.set(fresh.switch.client());
            open.certificate = fresh.certificate;
        } else if open.certificate != credential.certificate {
            return Ok(Refreshed::Outdated);
        }
        match (&open.bearer, &credential.token) {
            (Some(bearer), Some(token)) => {
                bearer.set(token).map_err(|error| unusable(reference, error.to_string()))?;
            }
            (None, None) => {}
            _ => return Ok(Refreshed::Outdated),
        }
        open.version = credential.version;
        open.validity = credential.validity;
        Ok(Refreshed::Open)
    }

    async fn read(&self, reference: &SecretKeyRef) -> Result<Credential, ConnectError> {
        let secrets: Api<Secret> = Api::namespaced(self.hub.clone(), &reference.namespace);
        let what = format!("read Secret {}/{}", reference.namespace, reference.name);
        Credential::read(&call(what, secrets.get(&reference.name)).await?, reference)
    }

    async fn dial(
        &self,
        name: &str,
        reference: &SecretKeyRef,
        credential: Credential,
    ) -> Result<(Client, Open), ConnectError> {
        let Credential { kubeconfig, token, certificate, made_of, version, validity } = credential;
        let bearer = token.map(|token| Bearer::new(&token)).transpose();
        let bearer = bearer.map_err(|error| unusable(reference, error.to_string()))?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|error| unusable(reference, error.to_string()))?;
        let server = config.cluster_url.to_string();
        let client = (self.dial)(config, bearer.as_ref()).map_err(|problem| unusable(reference, problem))?;
        let switch = Switch::new(bounded(client, self.requests.of(name)));
        Ok((switch.client(), Open { server, bearer, switch, certificate, made_of, version, validity }))
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connect for Credentials {
    fn connect<'a>(&'a self, cluster: &'a ForeignCluster) -> BoxFuture<'a, Result<Client, ConnectError>> {
        Box::pin(self.client(cluster))
    }

    fn connect_apart<'a>(
        &'a self,
        cluster: &'a ForeignCluster,
    ) -> BoxFuture<'a, Result<Client, ConnectError>> {
        Box::pin(self.client_apart(cluster))
    }

    fn refresh<'a>(
        &'a self,
        cluster: &'a ForeignCluster,
        version: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Refreshed, ConnectError>> {
        Box::pin(self.look_again(cluster, version))
    }

    fn credential_version(&self, cluster: &str) -> Option<String> {
        self.open().get(cluster).and_then(|open| open.version.clone())
    }

    fn server(&self, cluster: &str) -> Option<String> {
        self.open().get(cluster).map(|open| open.server.clone())
    }

    fn credential_validity(&self, cluster: &str) -> Option<Validity> {
        self.open().get(cluster).and_then(|open| open.validity)
    }
}

/// The Secret of a ForeignCluster; none if it is the hub itself.
pub(super) fn reference(cluster: &ForeignCluster) -> Result<Option<&SecretKeyRef>, ConnectError> {
    if cluster.spec.type_ == ClusterType::Local {
        return Ok(None);
    }
    let credentials = cluster.spec.credentials.as_ref().ok_or(ConnectError::NoCredentials)?;
    Ok(Some(&credentials.secret_ref))
}

fn name(cluster: &ForeignCluster) -> String {
    cluster.metadata.name.clone().unwrap_or_default()
}

fn unusable(reference: &SecretKeyRef, problem: String) -> ConnectError {
    let SecretKeyRef { namespace, name, key } = reference;
    ConnectError::Kubeconfig { secret: format!("{namespace}/{name}"), key: key.clone(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use bytes::Bytes;
    use futures::StreamExt;
    use http_body::Frame;
    use http_body_util::StreamBody;
    use kube::client::Body;
    use serde_json::json;
    use std::convert::Infallible;

    /// A hub that answers every request with a Secret that holds a kubeconfig.
    fn hub() -> Client {
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": "https://member"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        });
        let data = base64::engine::general_purpose::STANDARD.encode(kubeconfig.to_string());
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "m", "namespace": "portolan"},
            "data": {"kubeconfig": data},
        });
        let send = tower::service_fn(move |_: http::Request<Body>| {
            let body = Body::from(secret.to_string().into_bytes());
            async move { Ok::<_, Infallible>(http::Response::new(body)) }
        });
        Client::new(send, "default")
    }

    /// A member whose answers go on for twice as long as any that is read.
    fn talkative() -> Client {
        let send = tower::service_fn(|_: http::Request<Body>| async {
            let chunk = || Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[b' '; 1 << 20])));
            let body = StreamBody::new(futures::stream::repeat_with(chunk).take(128));
            Ok::<_, Infallible>(http::Response::new(body))
        });
        Client::new(send, "default")
    }

    #[tokio::test]
    async fn an_answer_without_end_is_given_up_on_every_connection_to_a_member() {
        let credentials = Credentials::dialling(hub(), Arc::new(|_, _| Ok(talkative())));
        let cluster: ForeignCluster = serde_json::from_value(json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster", "metadata": {"name": "m"},
            "spec": {
                "clusterIdentity": {"clusterID": "m", "clusterName": "m"},
                "credentials": {"secretRef": {"namespace": "portolan", "name": "m"}},
            },
        }))
        .unwrap();
        let clients = [credentials.connect(&cluster).await, credentials.connect_apart(&cluster).await];
        for client in clients {
            let client = client.unwrap();
            let error = client.apiserver_version().await.unwrap_err().to_string();
            assert!(error.contains("the answer is longer than 64 MiB"), "{error}");
            let watch = http::Request::get("/api/v1/pods?watch=true").body(Vec::new()).unwrap();
            assert_eq!(client.request_text(watch).await.unwrap().len(), 128 << 20, "a watch has no end");
        }
    }
}
