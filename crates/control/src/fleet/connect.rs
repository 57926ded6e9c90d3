//! From a ForeignCluster to a client of that cluster.

use super::bearer::Bearer;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Secret;
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use portolan_api::ForeignCluster;
use portolan_api::foreigncluster::ClusterType;
use portolan_runtime::{CallError, call};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Why a cluster cannot be connected to.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The spec says nowhere how.
    #[error(
        "spec.credentials is not set: name the Secret that holds its kubeconfig, or set spec.type to Local"
    )]
    NoCredentials,
    /// The Secret could not be read.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The Secret has no such key.
    #[error("Secret {secret} has no key {key}: put the cluster's kubeconfig there")]
    NoKey {
        /// Namespace and name.
        secret: String,
        /// The key that is missing.
        key: String,
    },
    /// What the Secret holds is not a usable kubeconfig.
    #[error("Secret {secret}, key {key}: not a usable kubeconfig: {problem}")]
    Kubeconfig {
        /// Namespace and name.
        secret: String,
        /// The key.
        key: String,
        /// What is wrong; never the content itself.
        problem: String,
    },
}

/// Makes clients for members. Production reads credentials from Secrets; a sandbox hands out in-process clients.
pub trait Connect: Send + Sync + 'static {
    /// A client for the cluster that the ForeignCluster stands for.
    fn connect<'a>(&'a self, cluster: &'a ForeignCluster) -> BoxFuture<'a, Result<Client, ConnectError>>;
}

/// Connects by the kubeconfig in the Secret that the ForeignCluster names, or to the hub itself if it is local.
pub struct Credentials {
    hub: Client,
    /// By namespace and name of the Secret: the token that its connections use.
    bearers: Mutex<BTreeMap<(String, String), Bearer>>,
}

impl Credentials {
    /// Reads Secrets from this hub.
    #[must_use]
    pub fn from_hub(hub: Client) -> Self {
        Self { hub, bearers: Mutex::default() }
    }

    /// Lets connections that are open go on with the token that the Secret holds now.
    ///
    /// # Errors
    /// The hub does not answer. A Secret that is not usable is told when a connection is next made by it.
    pub async fn refresh(&self, namespace: &str, name: &str) -> Result<(), CallError> {
        let place = (namespace.to_owned(), name.to_owned());
        let bearer = self.bearers.lock().unwrap_or_else(PoisonError::into_inner).get(&place).cloned();
        let Some(bearer) = bearer else { return Ok(()) };
        let secrets: Api<Secret> = Api::namespaced(self.hub.clone(), namespace);
        let what = format!("read Secret {namespace}/{name}");
        let Some(secret) = call(what, secrets.get_opt(name)).await? else { return Ok(()) };
        let texts = secret.data.unwrap_or_default().into_values();
        let tokens = texts
            .filter_map(|bytes| Kubeconfig::from_yaml(std::str::from_utf8(&bytes.0).ok()?).ok())
            .filter_map(|mut kubeconfig| take_token(&mut kubeconfig));
        for token in tokens.take(1) {
            if bearer.set(&token).is_err() {
                tracing::warn!(secret = format!("{namespace}/{name}"), "the token cannot be sent");
            }
        }
        Ok(())
    }

    async fn client(&self, cluster: &ForeignCluster) -> Result<Client, ConnectError> {
        if cluster.spec.type_ == ClusterType::Local {
            return Ok(self.hub.clone());
        }
        let credentials = cluster.spec.credentials.as_ref().ok_or(ConnectError::NoCredentials)?;
        let reference = &credentials.secret_ref;
        let name = format!("{}/{}", reference.namespace, reference.name);
        let secrets: Api<Secret> = Api::namespaced(self.hub.clone(), &reference.namespace);
        let secret = call(format!("read Secret {name}"), secrets.get(&reference.name)).await?;
        let data = secret.data.unwrap_or_default();
        let Some(bytes) = data.get(&reference.key) else {
            return Err(ConnectError::NoKey { secret: name, key: reference.key.clone() });
        };
        let unusable = |problem: String| ConnectError::Kubeconfig {
            secret: name.clone(),
            key: reference.key.clone(),
            problem,
        };
        let text = std::str::from_utf8(&bytes.0).map_err(|_| unusable("it is not UTF-8 text".to_owned()))?;
        // The parser's own message may quote the text, and with it a credential.
        let mut kubeconfig = Kubeconfig::from_yaml(text)
            .map_err(|_| unusable("it is not valid kubeconfig YAML".to_owned()))?;
        reject_outside_references(&kubeconfig).map_err(unusable)?;
        let token = take_token(&mut kubeconfig);
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|error| unusable(error.to_string()))?;
        let builder = ClientBuilder::try_from(config).map_err(|error| unusable(error.to_string()))?;
        let Some(token) = token else { return Ok(builder.build()) };
        let bearer = Bearer::new(&token).map_err(|_| unusable("its token cannot be sent".to_owned()))?;
        let client = builder.with_layer(&bearer).build();
        let place = (reference.namespace.clone(), reference.name.clone());
        self.bearers.lock().unwrap_or_else(PoisonError::into_inner).insert(place, bearer);
        Ok(client)
    }
}

impl Connect for Credentials {
    fn connect<'a>(&'a self, cluster: &'a ForeignCluster) -> BoxFuture<'a, Result<Client, ConnectError>> {
        Box::pin(self.client(cluster))
    }
}

/// Takes the token of the only user out of a kubeconfig, so that it can be replaced while connections are open.
fn take_token(kubeconfig: &mut Kubeconfig) -> Option<String> {
    let [user] = kubeconfig.auth_infos.as_mut_slice() else { return None };
    let auth = user.auth_info.as_mut()?;
    let written = serde_json::to_value(&*auth).ok()?;
    auth.token = None;
    written["token"].as_str().map(str::to_owned)
}

/// A kubeconfig from a Secret must stand alone: one that ran a command or read a file would run and read it here.
fn reject_outside_references(kubeconfig: &Kubeconfig) -> Result<(), String> {
    for user in &kubeconfig.auth_infos {
        let Some(auth) = &user.auth_info else { continue };
        if auth.exec.is_some() || auth.auth_provider.is_some() {
            return Err(format!(
                "user {} runs a command; use a token or a client certificate in it",
                user.name
            ));
        }
        let files = [&auth.client_certificate, &auth.client_key, &auth.token_file];
        if files.iter().any(|file| file.is_some()) {
            return Err(format!("user {} refers to files; put their content into it", user.name));
        }
    }
    for cluster in &kubeconfig.clusters {
        if cluster.cluster.as_ref().is_some_and(|cluster| cluster.certificate_authority.is_some()) {
            return Err(format!("cluster {} refers to a file; put its content into it", cluster.name));
        }
    }
    Ok(())
}
