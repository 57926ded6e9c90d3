//! `portolan peer LINE`

use super::cluster_config;
use super::invite::told_tenancy;
use super::peer::{described, wait};
use crate::cli::PeerArgs;
use crate::connection;
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use jiff::Timestamp;
use portolan_control::tenancy::{Redeeming, redeem};
use portolan_core::tenancy::{InvitationLine, LONGEST_LIFE};
use rcgen::KeyPair;
use std::io::Read;
use std::sync::Arc;

/// More than the longest line.
const AT_MOST: u64 = 128 << 10;

pub(super) fn run(args: &PeerArgs, given: &str) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(peer(args, given)))
}

async fn peer(args: &PeerArgs, given: &str) -> Result<(), Failure> {
    let text = if given == "-" { standard_input()? } else { given.to_owned() };
    let line = InvitationLine::decode(&text).map_err(|error| {
        Failure::input(error).hint("`portolan invite` on the provider prints the line; `portolan peer -` reads it from standard input")
    })?;
    refuse_other_flags(args)?;
    let mut peer = described(args, None)?;
    peer.name = args.name.clone().unwrap_or_else(|| line.provider.name.clone());
    let (hub, _) = connection::answering(&args.cluster).await?;
    let own_name = match args.cluster_name.clone().or(cluster_config::read(&hub).await?.name) {
        Some(name) => name,
        None => cluster_config::as_name(&connection::own_address(&args.cluster)?.context),
    };
    let lifetime = i32::try_from(peer.token_lifetime).unwrap_or(i32::MAX);
    if lifetime > LONGEST_LIFE {
        return Err(Failure::input("--token-lifetime: providers give credentials of at most 30 days"));
    }
    let progress = Progress::start();
    let with = Redeeming {
        hub: hub.clone(),
        own_name,
        peer,
        line: &line,
        lifetime,
        timeout: args.timeout.0,
        dial: &connection::made,
        new_key: Arc::new(KeyPair::generate),
    };
    let redeemed =
        Box::pin(redeem(&with, &Timestamp::now, &|step| progress.step(step))).await.map_err(told_tenancy)?;
    if let Some(skew) = &redeemed.skew {
        anstream::eprintln!("\u{1b}[1mwarning\u{1b}[0m: {skew}; credentials are renewed by these clocks");
    }
    let cluster = wait(args, &hub, &redeemed.cluster, &progress).await?;
    let name = &with.peer.name;
    let (kind, until) = (redeemed.kind, redeemed.expires);
    if args.timeout.0.is_zero() {
        progress.done(&format!(
            "{name} is declared; nobody waited until it is Ready; its {kind} is valid until {until}"
        ));
    } else {
        let what = if cluster.spec.is_member() { "a member" } else { "a provider" };
        progress.done(&format!("{name} is {what}; its {kind} is valid until {until}"));
    }
    output::objects(args.output, &[serde_json::to_value(&cluster).map_err(Failure::other)?])
}

fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(AT_MOST).read_to_string(&mut text);
    read.map_err(|error| Failure::input(format!("cannot read the invitation from standard input: {error}")))?;
    Ok(text)
}

/// What a provider decides is not for the consumer to say.
fn refuse_other_flags(args: &PeerArgs) -> Result<(), Failure> {
    let given = [
        ("--namespace", !args.namespaces.is_empty()),
        ("--all-labelled-namespaces", args.all_labelled_namespaces),
        ("--traffic-from-prometheus", args.traffic_from_prometheus.is_some()),
        ("--dry-run", args.dry_run),
        ("--insecure", args.insecure),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((flag, _)) => {
            Err(Failure::input(format!("{flag} cannot be given with an invitation: the provider decides"))
                .hint("`portolan invite --namespace NAME` on the provider opens a namespace"))
        }
        None => Ok(()),
    }
}
