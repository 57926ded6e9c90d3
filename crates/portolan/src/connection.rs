//! From the words of kubectl to clusters.

use crate::cli::ClusterArgs;
use crate::failure::Failure;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kube::config::{Cluster, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use portolan_control::peering::Address;
use std::path::Path;

/// A client for the cluster that the flags name.
pub(crate) async fn client(args: &ClusterArgs) -> Result<Client, Failure> {
    let options = KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
    let config = match &args.kubeconfig {
        Some(file) => {
            let kubeconfig = read(Some(file))?;
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| {
                Failure::input(format!("kubeconfig {} is not usable: {error}", file.display()))
            })?
        }
        None if args.context.is_some() => Config::from_kubeconfig(&options)
            .await
            .map_err(|error| Failure::input(format!("the default kubeconfig is not usable: {error}")))?,
        None => Config::infer().await.map_err(|error| {
            Failure::input(format!("no cluster to work with: {error}"))
                .hint("give --kubeconfig FILE, or set KUBECONFIG, or try `portolan demo` without any cluster")
        })?,
    };
    Client::try_from(config).map_err(|error| Failure::input(format!("cannot make a client: {error}")))
}

/// A client for a hub that answers, and its version of Kubernetes.
pub(crate) async fn answering(args: &ClusterArgs) -> Result<(Client, String), Failure> {
    let client = client(args).await?;
    let version = version(&client, "the hub", "--kubeconfig and --context").await?;
    Ok((client, version))
}

/// The version of a cluster's Kubernetes; what a user meets when it does not answer.
pub(crate) async fn version(client: &Client, called: &str, flags: &str) -> Result<String, Failure> {
    let asked = portolan_runtime::call(format!("ask {called} for its version"), client.apiserver_version());
    let answer = asked.await.map_err(|error| {
        Failure::other(format!("{called} does not answer: {}", portolan_runtime::chain(&error)))
            .hint(format!("check {flags} by `kubectl version` with the same context"))
    })?;
    Ok(answer.git_version)
}

/// A context of a kubeconfig: its name, a client, and how its API server is reached.
pub(crate) struct Remote {
    /// The name of the context.
    pub(crate) context: String,
    /// A client, as the user of the context.
    pub(crate) client: Client,
    /// How its API server is reached, without anything of the user.
    pub(crate) address: Address,
}

/// The cluster of a context, to be reached from elsewhere.
pub(crate) async fn remote(file: Option<&Path>, context: &str) -> Result<Remote, Failure> {
    let kubeconfig = read(file)?;
    let found = kubeconfig.contexts.iter().find(|each| each.name == context);
    let cluster = found.and_then(|each| each.context.as_ref()).map(|each| each.cluster.as_str());
    let Some(cluster) = cluster else {
        let known: Vec<_> = kubeconfig.contexts.iter().map(|each| each.name.as_str()).collect();
        return Err(Failure::input(format!("the kubeconfig has no context {context:?}"))
            .hint(format!("it has {}", if known.is_empty() { "none".into() } else { known.join(", ") })));
    };
    let found = kubeconfig.clusters.iter().find(|each| each.name == cluster);
    let address = match found.and_then(|each| each.cluster.as_ref()) {
        Some(cluster) => address(cluster, context)?,
        None => {
            return Err(Failure::input(format!("context {context}: no cluster {cluster:?} is described")));
        }
    };
    let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| Failure::input(format!("context {context} is not usable: {error}")))?;
    let client = Client::try_from(config)
        .map_err(|error| Failure::input(format!("context {context}: cannot make a client: {error}")))?;
    Ok(Remote { context: context.to_owned(), client, address })
}

fn read(file: Option<&Path>) -> Result<Kubeconfig, Failure> {
    match file {
        Some(file) => Kubeconfig::read_from(file)
            .map_err(|error| Failure::input(format!("cannot use kubeconfig {}: {error}", file.display()))),
        None => Kubeconfig::read()
            .map_err(|error| Failure::input(format!("the default kubeconfig is not usable: {error}"))),
    }
}

fn address(cluster: &Cluster, context: &str) -> Result<Address, Failure> {
    let server = cluster
        .server
        .clone()
        .ok_or_else(|| Failure::input(format!("context {context}: its cluster has no server")))?;
    let authority = match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
        (Some(data), _) => Some(data.clone()),
        (None, Some(file)) => {
            let pem = std::fs::read(file).map_err(|error| {
                Failure::input(format!("context {context}: cannot read authority {file}: {error}"))
            })?;
            Some(BASE64_STANDARD.encode(pem))
        }
        (None, None) => None,
    };
    Ok(Address {
        server,
        authority,
        tls_server_name: cluster.tls_server_name.clone(),
        proxy: cluster.proxy_url.clone(),
        insecure: cluster.insecure_skip_tls_verify.unwrap_or(false),
    })
}
