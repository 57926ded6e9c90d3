//! `portolan invite`, `portolan accept` and `portolan generate peer-command`

use super::cluster_config;
use super::share::parsed;
use crate::cli::{AcceptArgs, GenerateCommand, InviteArgs};
use crate::connection;
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client};
use portolan_api::Invitation;
use portolan_api::invitation::{Acceptance, InvitationPhase};
use portolan_api::sharing::Sharing;
use portolan_api::words::is_name;
use portolan_control::fleet::check_server;
use portolan_control::names::FIELD_MANAGER;
use portolan_control::peering::install_definitions;
use portolan_control::tenancy::{Inviting, TenancyError, invite};
use portolan_core::tenancy::{InvitationLine, fingerprint};
use portolan_runtime::{call, chain};
use serde_json::json;

/// The namespace of invitations.
const NAMESPACE: &str = "portolan";

/// An invitation that is good for longer is as good as a password.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(7 * 24 * 3600);

pub(super) fn run(args: &InviteArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let line = runtime.block_on(Box::pin(make(args)))?;
    output::data(&format!("{}\n", line.encode()))
}

pub(super) fn generate(command: &GenerateCommand) -> Result<(), Failure> {
    let GenerateCommand::PeerCommand(args) = command;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let line = runtime.block_on(Box::pin(make(&args.invite)))?;
    if !args.only_command {
        anstream::eprintln!("run this with the context of the other cluster, until {}:", line.expires);
    }
    output::data(&format!("portolan peer {}\n", line.encode()))
}

async fn make(args: &InviteArgs) -> Result<InvitationLine, Failure> {
    let (cluster, _) = connection::answering(&args.cluster).await?;
    let mut own = connection::own_address(&args.cluster)?;
    let told = cluster_config::read(&cluster).await?;
    if let Some(server) = args.server.as_ref().or(told.server.as_ref()) {
        own.address.server.clone_from(server);
    }
    if args.tls_server_name.is_some() {
        own.address.tls_server_name.clone_from(&args.tls_server_name);
    }
    let from = match (&args.server, &told.server) {
        (Some(_), _) => "--server",
        (None, Some(_)) => "the value cluster.apiServerURL of the installation",
        (None, None) => "the context",
    };
    check(args, from, &own.address.server)?;
    if !args.with_pods {
        refuse_pods(&cluster, &args.namespaces).await?;
    }
    let provider =
        args.cluster_name.clone().or(told.name).unwrap_or_else(|| cluster_config::as_name(&own.context));
    if !is_name(&provider) {
        return Err(Failure::input(format!("--cluster-name: {provider:?} cannot be a name in Kubernetes"))
            .hint("give one of at most 63 lower-case letters, digits and dashes"));
    }
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(|error| Failure::other(format!("no randomness: {error}")))?;
    let now = Timestamp::now();
    let expires = SignedDuration::try_from(args.expires.0).ok().and_then(|life| now.checked_add(life).ok());
    let inviting = Inviting {
        provider,
        consumer: args.name.clone(),
        namespaces: args.namespaces.clone(),
        sees_cluster: args.show_cluster,
        sharing: args.sharing.as_deref().map(sharing).transpose()?,
        acceptance: if args.manual { Acceptance::Manual } else { Acceptance::Automatic },
        // API servers write whole seconds.
        expires: expires.and_then(|at| Timestamp::from_second(at.as_second()).ok()).unwrap_or(now),
        address: own.address,
        random,
    };
    let progress = Progress::start();
    progress.step("installing definitions");
    install_definitions(&cluster).await.map_err(super::peer::told)?;
    progress.step("making the invitation");
    let line = invite(&cluster, &inviting, now).await.map_err(told_tenancy)?;
    if inviting.sharing.is_none() {
        anstream::eprintln!(
            "\u{1b}[1mhint\u{1b}[0m: nothing is shared with the consumer but what the default SharingClass says, if there is one; \
             `portolan share` shares more, or `portolan invite --sharing 50%`"
        );
    }
    progress.done(&format!(
        "invitation {} can be used once, until {}, at {}; `portolan controller` must run here then",
        line.invitation, line.expires, line.server
    ));
    Ok(line)
}

/// Refuses namespaces with pods of somebody else: the quota of a consumer bounds everybody in its namespaces.
async fn refuse_pods(cluster: &Client, namespaces: &[String]) -> Result<(), Failure> {
    for namespace in namespaces {
        let pods: Api<Pod> = Api::namespaced(cluster.clone(), namespace);
        let params = ListParams::default().fields("status.phase!=Succeeded,status.phase!=Failed").limit(500);
        let found = call(format!("list pods in namespace {namespace}"), pods.list_metadata(&params)).await;
        let count = found.map_err(|error| Failure::call(&error))?.items.len();
        if count > 0 {
            return Err(Failure::input(format!(
                "--namespace {namespace}: {count} pods run there already; the consumer could read the Secrets of that namespace, \
                 and its quota would bound these pods too"
            ))
            .hint("give it a namespace of its own")
            .hint("--with-pods invites into it nevertheless, for instance a consumer whose pods are still there"));
        }
    }
    Ok(())
}

fn sharing(percentage: &str) -> Result<Sharing, Failure> {
    Ok(Sharing { percentage: Some(parsed(percentage)?), ..Sharing::default() })
}

fn check(args: &InviteArgs, from: &str, server: &str) -> Result<(), Failure> {
    check_server(server, false).map_err(|problem| {
        Failure::input(format!("{from}: {problem}")).hint("give --server a URL such as https://10.0.0.5:6443")
    })?;
    let host = server.trim_start_matches("https://");
    if args.server.is_none() && ["localhost", "127.", "[::1]"].iter().any(|local| host.starts_with(local)) {
        anstream::eprintln!(
            "\u{1b}[1mwarning\u{1b}[0m: {server} is this machine: only a consumer on the same machine reaches it; --server \
             gives another URL"
        );
    }
    if args.expires.0 > LONGEST || args.expires.0.as_secs() < 60 {
        return Err(Failure::input(format!("--expires {}: give one minute to seven days", args.expires)));
    }
    let is_system = |name: &&String| {
        ["kube-", "portolan-"].iter().any(|system| name.starts_with(system)) || *name == NAMESPACE
    };
    if let Some(name) = args.namespaces.iter().find(is_system) {
        let message = format!("--namespace {name}: the consumer could read every Secret of the system there");
        return Err(Failure::input(message).hint("give it a namespace of its own"));
    }
    let named = args.namespaces.iter().map(|name| ("--namespace", name));
    for (flag, name) in named.chain(args.name.iter().map(|name| ("--name", name))) {
        if !is_name(name) || (flag == "--name" && name.len() > 40) {
            return Err(Failure::input(format!("{flag}: {name:?} cannot be a name in Kubernetes"))
                .hint("give one of at most 40 lower-case letters, digits and dashes"));
        }
    }
    Ok(())
}

pub(super) fn accept(args: &AcceptArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(accept_one(args)))
}

async fn accept_one(args: &AcceptArgs) -> Result<(), Failure> {
    let (cluster, _) = connection::answering(&args.cluster).await?;
    let api: Api<Invitation> = Api::namespaced(cluster, NAMESPACE);
    let all =
        call("list Invitations", api.list(&ListParams::default())).await.map_err(|e| Failure::call(&e))?;
    let name = |each: &Invitation| each.metadata.name.clone().unwrap_or_default();
    let waits = |each: &&Invitation| {
        let status = each.status.clone().unwrap_or_default();
        let consumer = status.consumer.map(|consumer| consumer.cluster_name);
        status.phase == InvitationPhase::AwaitingAcceptance
            && (name(each) == args.name || consumer.as_deref() == Some(&args.name))
    };
    let found: Vec<&Invitation> = all.items.iter().filter(waits).collect();
    let invitation = match found.as_slice() {
        [one] => *one,
        [] => {
            return Err(Failure::input(format!("no invitation waits by the name {}", args.name))
                .hint("`kubectl get invitations -n portolan` lists them"));
        }
        several => {
            let names: Vec<String> = several.iter().map(|each| name(each)).collect();
            return Err(Failure::input(format!(
                "{} clusters call themselves {}: accept one of the invitations {}",
                several.len(),
                args.name,
                names.join(", ")
            )));
        }
    };
    let id = name(invitation);
    let patch = Patch::Merge(json!({
        "metadata": { "resourceVersion": invitation.metadata.resource_version }, "spec": { "accepted": true },
    }));
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let accepted = call(format!("accept Invitation {NAMESPACE}/{id}"), api.patch(&id, &params, &patch)).await;
    accepted.map_err(|error| Failure::call(&error))?;
    let status = invitation.status.clone().unwrap_or_default();
    let consumer = status.consumer.map(|consumer| consumer.cluster_name).unwrap_or_default();
    let key = fingerprint(&status.key_digest.unwrap_or_default());
    output::data(&format!("invitation.portolan.dev/{id} accepted: cluster {consumer}, key {key}\n"))
}

/// A failure of an invitation as a user meets it.
pub(super) fn told_tenancy(error: TenancyError) -> Failure {
    let failure = Failure::other(chain(&error));
    match error {
        TenancyError::Peer(error) => super::peer::told(error),
        TenancyError::Call(error) => Failure::call(&error),
        TenancyError::Unreachable { .. } => failure
            .hint("check from this machine that the address and port are open, and that nothing on the way answers in its place")
            .hint("`portolan invite --server URL` on the provider names another address"),
        TenancyError::NotAccepted { .. } | TenancyError::Expired { .. } => {
            failure.hint("`portolan invite` on the provider makes another one")
        }
        TenancyError::OtherKey { .. } => {
            failure.hint("`portolan get clusters` on the provider lists who has peered; `portolan unpeer` ends it")
        }
        TenancyError::Skew { provider, .. } => failure
            .hint(format!("use {provider}'s version of this program for `portolan peer`, or upgrade what is older by `portolan upgrade`"))
            .hint("nothing was made, and the invitation can still be used"),
        TenancyError::TimedOut { .. } => failure.hint("the same command with the same line goes on from there"),
        TenancyError::NamespaceTaken { .. } => failure
            .hint("give another --namespace")
            .hint("`portolan unpeer` or spec.incoming.namespaces of its ForeignCluster takes the namespace from a tenant"),
        TenancyError::OtherProvider { name, .. } => failure
            .hint(format!("ask the administrator of {name}, by another way than the line came, whether it is of that cluster"))
            .hint(format!("`portolan unpeer {name}` first, if that cluster has another authority now")),
        TenancyError::Refused { .. } | TenancyError::Key { .. } => failure,
    }
}
