//! `portolan controller`

use crate::cli::{ClusterArgs, ControllerArgs};
use crate::failure::Failure;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use portolan_control::fleet::Credentials;
use portolan_runtime::{Clock, Election, Seed, Term};
use std::sync::Arc;

pub(super) fn run(args: &ControllerArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(args))
}

async fn serve(args: &ControllerArgs) -> Result<(), Failure> {
    let hub = client(&args.cluster).await?;
    let version = hub.apiserver_version().await.map_err(|error| {
        Failure::other(format!("the hub's API server does not answer: {}", portolan_runtime::chain(&error)))
            .hint("check --kubeconfig and --context by `kubectl version` with the same flags")
    })?;
    eprintln!("Portolan {} serves a hub of Kubernetes {}", env!("CARGO_PKG_VERSION"), version.git_version);
    let seed = Seed::new(Timestamp::now().as_nanosecond().unsigned_abs() as u64);
    let clock = Clock::starting_at(Timestamp::now());
    let holder = holder()?;
    let connect = Arc::new(Credentials::from_hub(hub.clone()));
    let controllers =
        |term: Term| portolan_control::run(hub.clone(), connect.clone(), clock.clone(), seed, term);
    if !args.leader_elect {
        return tokio::select! {
            () = controllers(Term::alone(&holder)) => Err(Failure::other("the controllers ended by themselves")),
            stopped = crate::signals::stopped() => stopped.inspect(|()| say_goodbye()),
        };
    }
    ensure_namespace(&hub, &args.lease_namespace).await?;
    eprintln!("{holder} takes part in election {}/{}", args.lease_namespace, args.lease_name);
    let election = Election {
        client: hub.clone(),
        namespace: args.lease_namespace.clone(),
        name: args.lease_name.clone(),
        holder,
        clock: clock.clone(),
        seed: seed.child("election"),
    };
    let mut stopped = Ok(());
    election.lead(controllers, async { stopped = crate::signals::stopped().await }).await;
    stopped.inspect(|()| say_goodbye())
}

fn say_goodbye() {
    eprintln!("stopped; what is placed goes on running");
}

/// A name that no other process has.
fn holder() -> Result<String, Failure> {
    let host = std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty());
    let host = host.or_else(|| std::fs::read_to_string("/etc/hostname").ok()).unwrap_or_default();
    let host = if host.trim().is_empty() { "portolan" } else { host.trim() };
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(|error| Failure::other(format!("no randomness: {error}")))?;
    Ok(format!("{host}_{:08x}", u32::from_le_bytes(random)))
}

/// Makes the namespace of the lease, unless it is there.
async fn ensure_namespace(hub: &Client, name: &str) -> Result<(), Failure> {
    let failed = |what: &str, error: &kube::Error| {
        Failure::other(format!(
            "cannot {what} namespace {name} of the hub: {}",
            portolan_runtime::chain(error)
        ))
        .hint("name another one by --lease-namespace, or run alone with --leader-elect=false")
    };
    let api: Api<Namespace> = Api::all(hub.clone());
    if api.get_opt(name).await.map_err(|error| failed("read", &error))?.is_some() {
        return Ok(());
    }
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    match api.create(&PostParams::default(), &namespace).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(failed("create", &error)),
        Ok(_) => Ok(()),
    }
}

/// A client for the cluster that the flags name.
async fn client(args: &ClusterArgs) -> Result<Client, Failure> {
    let options = KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
    let config = match &args.kubeconfig {
        Some(file) => {
            let kubeconfig = Kubeconfig::read_from(file).map_err(|error| {
                Failure::input(format!("cannot use kubeconfig {}: {error}", file.display()))
            })?;
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
