//! From the words of kubectl to clusters.

use crate::cli::ClusterArgs;
use crate::failure::Failure;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kube::config::{Cluster, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use portolan_control::fleet::{check_server, check_token};
use portolan_control::peering::Address;
use std::path::Path;

/// A client for the cluster that the flags name.
pub(crate) async fn client(args: &ClusterArgs) -> Result<Client, Failure> {
    let options = KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
    let config = match (&args.kubeconfig, &args.context) {
        (None, None) => Config::infer().await.map_err(|error| {
            let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref());
            let why = match cause {
                Some(cause @ KubeconfigError::Parse(_)) => unreadable(cause),
                _ => error.to_string(),
            };
            Failure::input(format!("no cluster to work with: {why}"))
                .hint("give --kubeconfig FILE, or set KUBECONFIG, or try `portolan demo` without any cluster")
        })?,
        (file, context) => {
            let kubeconfig = read(file.as_deref())?;
            if let Some(context) = context {
                find_context(&kubeconfig, context)?;
            }
            let called = called(file.as_deref());
            Config::from_custom_kubeconfig(kubeconfig, &options)
                .await
                .map_err(|error| Failure::input(format!("{called} is not usable: {}", unreadable(&error))))?
        }
    };
    made(config).map_err(|problem| Failure::input(format!("cannot make a client: {problem}")))
}

/// A client, unless something in the configuration cannot be sent: the library panics on it.
fn made(config: Config) -> Result<Client, String> {
    check_server(&config.cluster_url.to_string(), true)?;
    let user = serde_json::to_value(&config.auth_info).map_err(|error| error.to_string())?;
    if let Some(token) = user["token"].as_str() {
        check_token(token).map_err(|error| error.to_string())?;
    }
    Client::try_from(config).map_err(|error| error.to_string())
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
        let why = portolan_runtime::foreign_text(&portolan_runtime::chain(&error));
        let failure = match error.code() {
            Some(401) => Failure::other(format!("{called} does not accept the credential: {why}")),
            Some(_) => Failure::other(format!("{called} answers, and refuses: {why}")),
            None => Failure::other(format!("{called} does not answer: {why}")),
        };
        failure.hint(format!("check {flags} by `kubectl version` with the same context"))
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
    let cluster = find_context(&kubeconfig, context)?;
    let found = kubeconfig.clusters.iter().find(|each| each.name == cluster);
    let address = match found.and_then(|each| each.cluster.as_ref()) {
        Some(cluster) => address(cluster, context)?,
        None => {
            return Err(Failure::input(format!("context {context}: no cluster {cluster:?} is described")));
        }
    };
    let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| {
        Failure::input(format!("context {context} is not usable: {}", unreadable(&error)))
    })?;
    let client = made(config)
        .map_err(|problem| Failure::input(format!("context {context}: cannot make a client: {problem}")))?;
    Ok(Remote { context: context.to_owned(), client, address })
}

/// The name of the cluster of a context.
fn find_context(kubeconfig: &Kubeconfig, context: &str) -> Result<String, Failure> {
    let found = kubeconfig.contexts.iter().find(|each| each.name == context);
    if let Some(context) = found.and_then(|each| each.context.as_ref()) {
        return Ok(context.cluster.clone());
    }
    let known: Vec<_> = kubeconfig.contexts.iter().map(|each| each.name.as_str()).collect();
    Err(Failure::input(format!("the kubeconfig has no context {context:?}"))
        .hint(format!("it has {}", if known.is_empty() { "none".into() } else { known.join(", ") })))
}

fn read(file: Option<&Path>) -> Result<Kubeconfig, Failure> {
    let read = match file {
        Some(file) => Kubeconfig::read_from(file),
        None => Kubeconfig::read(),
    };
    read.map_err(|error| Failure::input(format!("cannot use {}: {}", called(file), unreadable(&error))))
}

fn called(file: Option<&Path>) -> String {
    file.map_or_else(|| "the default kubeconfig".to_owned(), |file| format!("kubeconfig {}", file.display()))
}

/// Why a kubeconfig cannot be used. The parser shows the lines around a mistake, and with them credentials: only the
/// place of the mistake is told.
fn unreadable(error: &KubeconfigError) -> String {
    if !matches!(error, KubeconfigError::Parse(_)) {
        return error.to_string();
    }
    let text = error.to_string();
    let number = |word: &str| {
        let digits: String = text.split_once(word)?.1.chars().take_while(char::is_ascii_digit).collect();
        Some(digits).filter(|digits| !digits.is_empty())
    };
    match (number("line "), number("column ")) {
        (Some(line), Some(column)) => format!("it is not valid YAML: line {line}, column {column}"),
        _ => "it is not valid YAML".to_owned(),
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
        given: false,
    })
}
