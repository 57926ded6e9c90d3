//! From the words of kubectl to clusters.

use crate::cli::ClusterArgs;
use crate::failure::Failure;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kube::client::ClientBuilder;
use kube::config::{Cluster, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use portolan_control::fleet::{bounded_client, check_server, check_token};
use portolan_control::peering::Address;
use portolan_runtime::metrics::CountedRequests;
use std::path::{Path, PathBuf};

/// A client for the cluster that the flags name.
pub(crate) async fn client(args: &ClusterArgs) -> Result<Client, Failure> {
    client_of(config(args).await?)
}

/// A client by this configuration.
pub(crate) fn client_of(config: Config) -> Result<Client, Failure> {
    made(config).map_err(unmade)
}

fn unmade(problem: String) -> Failure {
    Failure::input(format!("cannot make a client: {problem}"))
}

/// How the cluster that the flags name is reached.
pub(crate) async fn config(args: &ClusterArgs) -> Result<Config, Failure> {
    let options = KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
    let file = args.kubeconfig.as_deref();
    let loaded = load(file)?;
    let names_none = loaded.as_ref().is_none_or(|loaded| loaded.kubeconfig.contexts.is_empty());
    if names_none && file.is_none() && args.context.is_none() && in_cluster() {
        return Config::incluster().map_err(|error| {
            Failure::input(format!("the service account of this pod is not usable: {error}"))
        });
    }
    let Loaded { kubeconfig, called } = loaded.ok_or_else(no_kubeconfig)?;
    if let Some(context) = &args.context {
        find_context(&kubeconfig, context)?;
    }
    Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| Failure::input(format!("{called} is not usable: {}", unreadable(&error))))
}

/// Whether this process runs in a pod.
fn in_cluster() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

/// A client whose answers end, unless something in the configuration cannot be sent: the library panics on it.
pub(crate) fn made(config: Config) -> Result<Client, String> {
    check(&config)?;
    Client::try_from(config).map(bounded_client).map_err(|error| error.to_string())
}

fn check(config: &Config) -> Result<(), String> {
    check_server(&config.cluster_url.to_string(), true)?;
    let user = serde_json::to_value(&config.auth_info).map_err(|error| error.to_string())?;
    if let Some(token) = user["token"].as_str() {
        check_token(token).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// A client for a hub that answers, and its version of Kubernetes. Its requests are counted.
pub(crate) async fn answering_counted(
    args: &ClusterArgs,
    requests: &CountedRequests,
) -> Result<(Client, String), Failure> {
    let config = config(args).await?;
    check(&config).map_err(unmade)?;
    let builder = ClientBuilder::try_from(config).map_err(|error| unmade(error.to_string()))?;
    let client = builder.with_layer(requests).build();
    let version = version(&client, "the hub", "--kubeconfig and --context").await?;
    Ok((client, version))
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

/// How the cluster of the flags is reached from elsewhere, and the name of its context.
pub(crate) struct OwnAddress {
    /// The name of the context.
    pub(crate) context: String,
    /// How its API server is reached, without anything of the user.
    pub(crate) address: Address,
}

/// How the cluster that the flags name is reached.
pub(crate) fn own_address(args: &ClusterArgs) -> Result<OwnAddress, Failure> {
    let kubeconfig = read(args.kubeconfig.as_deref())?;
    let context = args.context.clone().or_else(|| kubeconfig.current_context.clone());
    let context =
        context.ok_or_else(|| Failure::input("the kubeconfig has no current-context: give --context"))?;
    let cluster = find_context(&kubeconfig, &context)?;
    let found = kubeconfig.clusters.iter().find(|each| each.name == cluster);
    let Some(cluster) = found.and_then(|each| each.cluster.as_ref()) else {
        return Err(Failure::input(format!("context {context}: no cluster {cluster:?} is described")));
    };
    let address = address(cluster, &context)?;
    Ok(OwnAddress { context, address })
}

/// The names of the contexts of a kubeconfig; none if it cannot be read.
pub(crate) fn context_names(file: Option<&Path>) -> Vec<String> {
    let kubeconfig = read(file).map(|kubeconfig| kubeconfig.contexts).unwrap_or_default();
    kubeconfig.into_iter().map(|context| context.name).collect()
}

/// The names of the contexts of a kubeconfig that must be readable.
pub(crate) fn contexts(file: &Path) -> Result<Vec<String>, Failure> {
    Ok(read(Some(file))?.contexts.into_iter().map(|context| context.name).collect())
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
    load(file)?.map(|loaded| loaded.kubeconfig).ok_or_else(no_kubeconfig)
}

/// A kubeconfig, and the files that it comes from, in words.
struct Loaded {
    kubeconfig: Kubeconfig,
    called: String,
}

/// The kubeconfig of the flag, of $KUBECONFIG or of the home directory. As in kubectl, only the file of the flag must exist;
/// nothing if no file does.
fn load(file: Option<&Path>) -> Result<Option<Loaded>, Failure> {
    let files = file.map_or_else(default_files, |file| vec![file.to_owned()]);
    let exists = |each: &PathBuf| file.is_some() || each.try_exists().unwrap_or(true);
    let mut loaded: Option<Loaded> = None;
    for each in files.into_iter().filter(exists) {
        let unusable = |error: KubeconfigError| {
            Failure::input(format!("cannot use kubeconfig {}: {}", each.display(), unreadable(&error)))
        };
        let mut next = Kubeconfig::read_from(&each).map_err(unusable)?;
        next.current_context = next.current_context.filter(|context| !context.is_empty());
        loaded = Some(match loaded {
            None => Loaded { kubeconfig: next, called: format!("kubeconfig {}", each.display()) },
            Some(Loaded { kubeconfig, called }) => Loaded {
                kubeconfig: kubeconfig.merge(next).map_err(unusable)?,
                called: format!("{called}, {}", each.display()),
            },
        });
    }
    Ok(loaded)
}

/// The files that $KUBECONFIG names; none if it is not set.
fn files_of_environment() -> Vec<PathBuf> {
    let value = std::env::var_os("KUBECONFIG").unwrap_or_default();
    std::env::split_paths(&value).filter(|path| !path.as_os_str().is_empty()).collect()
}

fn default_files() -> Vec<PathBuf> {
    let files = files_of_environment();
    if files.is_empty() {
        std::env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect()
    } else {
        files
    }
}

/// The failure of a command that finds no kubeconfig.
fn no_kubeconfig() -> Failure {
    let named = |files: Vec<PathBuf>| {
        files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
    };
    let why = if files_of_environment().is_empty() {
        format!("KUBECONFIG is not set, and {} does not exist", named(default_files()))
    } else {
        format!("none of the files of KUBECONFIG exists: {}", named(files_of_environment()))
    };
    Failure::input(format!("no cluster to work with: {why}"))
        .hint("give --kubeconfig FILE, or set KUBECONFIG, or try `portolan demo` without any cluster")
}

/// Why a kubeconfig cannot be used. The parser shows the lines around a mistake, and with them credentials: only the
/// place of the mistake is told.
fn unreadable(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(_) => {}
        KubeconfigError::ReadConfig(source, _) => return source.to_string(),
        KubeconfigError::CurrentContextNotSet => {
            return "it has no current-context: set one, or give --context".to_owned();
        }
        KubeconfigError::LoadContext(name) => {
            return format!("it has no context {name:?}, which is its current-context");
        }
        KubeconfigError::LoadClusterOfContext(name) => {
            return format!("it has no cluster {name:?}, which its context names");
        }
        KubeconfigError::MissingClusterUrl => return "its cluster has no server".to_owned(),
        other => return other.to_string(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_runtime::BODY_LIMIT;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// A server whose answers have no end, and how much of them was sent.
    async fn endless() -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let sent = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&sent);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 4096]).await;
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"gitVersion\": \"";
                let (chunk, mut written) = (vec![b'1'; 1 << 20], stream.write_all(head.as_bytes()).await);
                while written.is_ok() {
                    written = stream.write_all(&chunk).await;
                    counted.fetch_add(chunk.len(), Ordering::SeqCst);
                }
            }
        });
        (url, sent)
    }

    #[tokio::test]
    async fn a_version_without_end_is_given_up() {
        let (url, sent) = endless().await;
        let client = client_of(Config::new(url.parse().unwrap())).unwrap();
        // Not within the time that a command waits: what ends it is how long the answer is, on a slow machine too.
        let told = portolan_runtime::chain(&client.apiserver_version().await.unwrap_err());
        assert!(told.contains("longer than 64 MiB"), "{told}");
        // What was on its way when it was given up is not read.
        assert!(sent.load(Ordering::SeqCst) < 2 * BODY_LIMIT);
    }
}
