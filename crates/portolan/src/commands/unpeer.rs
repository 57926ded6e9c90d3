//! `portolan unpeer`

use super::invite::told_tenancy;
use super::peer::told;
use crate::cli::UnpeerArgs;
use crate::connection;
use crate::failure::Failure;
use crate::progress::Progress;
use jiff::Timestamp;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client};
use portolan_api::ForeignCluster;
use portolan_api::foreigncluster::ClusterType;
use portolan_api::placement::{ClusterTaint, TaintEffect};
use portolan_control::names::{FIELD_MANAGER, LEAVING_TAINT};
use portolan_control::peering::{
    Departure, Holding, PeerError, has_credential, holdings, identity, leave_hub, leave_local, leave_member,
};
use portolan_control::tenancy;
use portolan_runtime::{Clock, call, chain};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

pub(super) fn run(args: &UnpeerArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(unpeer(args)))
}

async fn unpeer(args: &UnpeerArgs) -> Result<(), Failure> {
    let (hub, _) = connection::answering(&args.cluster).await?;
    let name = &args.name;
    let api: Api<ForeignCluster> = Api::all(hub.clone());
    let cluster = call(format!("read ForeignCluster {name}"), api.get_opt(name)).await;
    let cluster = cluster.map_err(|error| Failure::other(chain(&error)))?;
    let member = remote(args).await?;
    let hub_id = identity(&hub, "the hub").await.map_err(told)?;
    if let Some(member) = &member {
        let found = identity(member, "the member").await.map_err(told)?;
        match &cluster {
            Some(cluster) => {
                let known = cluster.spec.cluster_identity.cluster_id.clone();
                if known != found {
                    return Err(told(PeerError::OtherCluster { name: name.clone(), known, found }));
                }
            }
            None => refuse_other_name(args, &api, &found).await?,
        }
    }
    let known = cluster.is_some() || has_credential(&hub, name).await.map_err(told)?;
    if !known && member.is_none() {
        return Err(unknown(name));
    }
    let progress = Progress::start();
    let held = holdings(&hub, name).await.map_err(told)?;
    if args.dry_run {
        return dry_run(name, &held, cluster.as_ref(), member.is_some());
    }
    if !held.is_empty() {
        match cluster.as_ref().filter(|_| args.drain) {
            Some(cluster) => drain(args, &hub, cluster, &progress).await?,
            None if args.force => {
                anstream::eprintln!(
                    "\u{1b}[1;33mwarning\u{1b}[0m: left behind in {name}, where they go on running: {}",
                    listed(&held)
                );
            }
            None => {
                return Err(Failure::other(format!("workloads are in {name}: {}", listed(&held)))
                    .hint("--drain moves them to other members first")
                    .hint("--force lets the member go, and leaves them running there"));
            }
        }
    }
    if let Some(cluster) = &cluster {
        end_tenancy(&hub, cluster, &progress).await;
    }
    let mut came = Departure::default();
    if is_local(cluster.as_ref()) {
        // First, since only the ForeignCluster tells that the hub is a member: interrupted here, the next run still knows.
        progress.step("taking what peering made out of the hub");
        came = leave_local(&hub, &hub_id).await.map_err(told)?;
    }
    if known {
        progress.step("taking it out of the hub");
    }
    let was_there = leave_hub(&hub, name).await.map_err(told)?;
    if let Some(member) = member.as_ref().filter(|_| !is_local(cluster.as_ref())) {
        if known {
            progress.step("taking what peering made out of the member");
        }
        came = leave_member(member, &hub_id).await.map_err(told)?;
    }
    if !was_there && came.went.is_empty() {
        return Err(unknown(name));
    }
    for stays in &came.stays {
        anstream::eprintln!("stays in {name}: {stays}");
    }
    let by_invitation =
        |cluster: &ForeignCluster| cluster.spec.outgoing.is_some() || cluster.spec.incoming.is_some();
    let both = |cluster: &ForeignCluster| cluster.spec.outgoing.is_some() && cluster.spec.incoming.is_some();
    if cluster.as_ref().is_some_and(|cluster| cluster.spec.incoming.is_some()) {
        tenancy::revoke(&hub, name, &Clock::starting_at(Timestamp::now())).await.map_err(told_tenancy)?;
    }
    if member.is_none() && !is_local(cluster.as_ref()) && !cluster.as_ref().is_some_and(by_invitation) {
        anstream::eprintln!(
            "what peering made is still in {name}: the same command with --remote-context takes it out"
        );
    }
    let what = match &cluster {
        Some(cluster) if both(cluster) => "neither a provider nor a consumer any more",
        Some(cluster) if cluster.spec.incoming.is_some() && cluster.spec.credentials.is_none() => {
            "no longer a consumer"
        }
        _ => "no longer a member",
    };
    progress.done(&format!("{name} is {what}"));
    Ok(())
}

/// Tells the provider that this cluster is a tenant of no more. One that does not answer holds nothing up.
async fn end_tenancy(hub: &Client, cluster: &ForeignCluster, progress: &Progress) {
    if cluster.spec.outgoing.is_none() {
        return;
    }
    let name = cluster.metadata.name.clone().unwrap_or_default();
    progress.step("telling the provider");
    let why = match has_credential(hub, &name).await {
        Ok(false) => format!("its credential, Secret portolan/{name}, is not there any more"),
        Err(error) => chain(&error),
        Ok(true) => match tenancy::tell_provider(hub, &name, &connection::made).await {
            Ok(Some(true)) => return,
            Ok(Some(false)) => {
                anstream::eprintln!(
                    "{name} does not know this cluster as its tenant any more: if `portolan get clusters` shows it there, \
                     `portolan unpeer` there removes it"
                );
                return;
            }
            Ok(None) => format!("Secret portolan/{name} does not hold what the invitation gave"),
            Err(error) => chain(&error),
        },
    };
    anstream::eprintln!(
        "\u{1b}[1;33mwarning\u{1b}[0m: {name} was not told that the peering ends: {why}; what it has of this cluster stays until \
         `portolan unpeer` is run there"
    );
}

/// The failure of a name that no member has.
fn unknown(name: &str) -> Failure {
    Failure::input(format!("no member is called {name}")).hint("`portolan get clusters` lists the members")
}

/// Refuses a cluster that is a member under another name than the given one, which no member has.
async fn refuse_other_name(args: &UnpeerArgs, api: &Api<ForeignCluster>, id: &str) -> Result<(), Failure> {
    let list = call("list ForeignClusters of the hub", api.list(&ListParams::default())).await;
    let list = list.map_err(|error| Failure::other(chain(&error)))?;
    let same = |each: &&ForeignCluster| each.spec.cluster_identity.cluster_id == id;
    let Some(member) = list.items.iter().find(same) else { return Ok(()) };
    let (given, name) = (&args.name, member.metadata.name.as_deref().unwrap_or_default());
    let context = args.remote.remote_context.as_deref().unwrap_or_default();
    Err(Failure::input(format!(
        "no member is called {given}: the cluster of context {context} is member {name}"
    ))
    .hint(format!("`portolan unpeer {name} --remote-context {context}` removes that member")))
}

/// Whether it is the hub as a member of its own fleet.
fn is_local(cluster: Option<&ForeignCluster>) -> bool {
    cluster.is_some_and(|cluster| cluster.spec.type_ == ClusterType::Local)
}

async fn remote(args: &UnpeerArgs) -> Result<Option<Client>, Failure> {
    let Some(context) = &args.remote.remote_context else { return Ok(None) };
    let file = args.remote.remote_kubeconfig.as_deref().or(args.cluster.kubeconfig.as_deref());
    Ok(Some(connection::remote(file, context).await?.client))
}

/// Asks the controller to move everything away, and waits until it has.
async fn drain(
    args: &UnpeerArgs,
    hub: &Client,
    cluster: &ForeignCluster,
    progress: &Progress,
) -> Result<(), Failure> {
    let name = &args.name;
    let mut taints = cluster.spec.taints.clone();
    if !taints.iter().any(|taint| taint.key == LEAVING_TAINT) {
        taints.push(ClusterTaint {
            key: LEAVING_TAINT.to_owned(),
            value: None,
            effect: TaintEffect::NoExecute,
        });
    }
    let api: Api<ForeignCluster> = Api::all(hub.clone());
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let patch = Patch::Merge(json!({ "spec": { "taints": taints } }));
    let tainted = call(format!("taint ForeignCluster {name}"), api.patch(name, &params, &patch)).await;
    tainted.map_err(|error| Failure::other(chain(&error)))?;
    let deadline = Instant::now() + args.timeout.0;
    loop {
        let held = holdings(hub, name).await.map_err(told)?;
        if held.is_empty() {
            return Ok(());
        }
        progress.step(&format!("waiting until they are elsewhere: {}", listed(&held)));
        if Instant::now() >= deadline {
            return Err(Failure::other(format!(
                "still in {name} after {}: {}",
                args.timeout,
                listed(&held)
            ))
            .hint(format!("`portolan explain` tells why one cannot go elsewhere; {name} stays tainted {LEAVING_TAINT}"))
            .hint("--force lets the member go, and leaves them running there"));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

fn dry_run(
    name: &str,
    held: &[Holding],
    cluster: Option<&ForeignCluster>,
    member: bool,
) -> Result<(), Failure> {
    let mut text = String::new();
    match cluster {
        Some(cluster) => {
            text.push_str(&format!("would delete ForeignCluster {name} and its Secret\n"));
            if cluster.spec.outgoing.is_some() {
                text.push_str(&format!("would tell {name} that this cluster is its tenant no more\n"));
            }
            if cluster.spec.incoming.is_some() {
                text.push_str(&format!("would take the rights of {name} in this cluster back\n"));
            }
        }
        None => text.push_str(&format!("no ForeignCluster is called {name}\n")),
    }
    if is_local(cluster) {
        text.push_str(
            "would delete the namespaces and labels in the hub that peering made and nobody else uses\n",
        );
    } else if member {
        text.push_str(
            "would delete the hub's account, roles and bindings in the member, and the namespaces and labels \
             that peering made and nobody else uses\n",
        );
    }
    if !held.is_empty() {
        text.push_str(&format!("workloads are there: {}\n", listed(held)));
    }
    crate::output::data(&text)
}

fn listed(held: &[Holding]) -> String {
    let each = |holding: &Holding| {
        let Holding { kind, namespace, name, replicas, .. } = holding;
        format!("{kind}/{name} in {namespace} ({replicas})")
    };
    held.iter().map(each).collect::<Vec<_>>().join(", ")
}
