//! `portolan controller`

use crate::cli::{ClusterArgs, ControllerArgs};
use crate::failure::Failure;
use jiff::Timestamp;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use portolan_control::fleet::Credentials;
use portolan_runtime::{Clock, Seed};
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
    let connect = Arc::new(Credentials::from_hub(hub.clone()));
    let controllers = portolan_control::run(hub, connect, Clock::starting_at(Timestamp::now()), seed);
    tokio::select! {
        () = controllers => Err(Failure::other("the controllers ended by themselves")),
        stopped = crate::signals::stopped() => {
            stopped?;
            eprintln!("stopped; what is placed goes on running");
            Ok(())
        }
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
