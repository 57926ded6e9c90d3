//! `portolan sandbox`

use crate::cli::SandboxUpArgs;
use crate::failure::Failure;
use crate::place::Place;
use crate::{output, signals};
use jiff::Timestamp;
use portolan_sandbox::{Called, ClusterConfig, NodeConfig, Profile, World, WorldConfig};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

pub(super) fn up(args: &SandboxUpArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(args))
}

async fn serve(args: &SandboxUpArgs) -> Result<(), Failure> {
    for (flag, quantity) in [("--cpu", &args.cpu), ("--memory", &args.memory)] {
        portolan_core::capacity::milli(quantity)
            .map_err(|error| Failure::input(format!("{flag}: {error}")))?;
    }
    // Tokens and keys come from the seed, so it must not be guessed.
    let seed = getrandom::u64()
        .map_err(|error| Failure::other(format!("the system gives no randomness: {error}")))?;
    let world = World::new(WorldConfig { seed, start: Timestamp::now(), ..WorldConfig::default() });
    let profile = args.profile.as_deref().map(read_profile).transpose()?.unwrap_or_default();
    let mut served = Vec::new();
    for index in 0..args.clusters {
        let node = NodeConfig::new(&args.cpu, &args.memory);
        let config = ClusterConfig::named(format!("c{}", index + 1))
            .nodes(usize::from(args.nodes), node)
            .profile(profile.clone())
            .heartbeats(args.heartbeats);
        let cluster = world.add_cluster(config);
        served.push(cluster.serve("kubectl", address(args.port, index)?).await.map_err(|error| {
            Failure::other(format!("cannot serve cluster c{}: {error}", index + 1))
                .hint("another program may use that port; leave --port out to take free ones")
        })?);
    }
    let place = Place::new("sandbox", args.kubeconfig.as_deref())?;
    place.write(&served)?;
    let names =
        served.iter().map(|each| format!("  {}  {}\n", each.cluster(), each.url())).collect::<String>();
    eprint!("{} clusters are up, {} nodes each:\n{names}\n", args.clusters, args.nodes);
    output::data(&format!("export KUBECONFIG={}\n", place.file().display()))?;
    eprintln!("\nTry `kubectl --context c1 get nodes`. Ctrl-C ends it; nothing is kept.");
    signals::stopped().await?;
    if args.calls { output::data(&calls(&world.calls())) } else { Ok(()) }
}

/// What was called, as a table; what nothing served is marked.
fn calls(called: &[Called]) -> String {
    let mut out = format!("\n{:>8}  {:<16}  RESOURCE\n", "CALLS", "VERB");
    for each in called {
        let unserved =
            if each.unserved > 0 { format!("  ({} not served)", each.unserved) } else { String::new() };
        out.push_str(&format!("{:>8}  {:<16}  {}{unserved}\n", each.count, each.verb, each.resource));
    }
    out
}

fn read_profile(file: &Path) -> Result<Profile, Failure> {
    let text = fs::read_to_string(file)
        .map_err(|error| Failure::input(format!("--profile: cannot read {}: {error}", file.display())))?;
    serde_saphyr::from_str(&text)
        .map_err(|error| Failure::input(format!("--profile: {} is not a profile: {error}", file.display())))
}

fn address(port: Option<u16>, index: u16) -> Result<SocketAddr, Failure> {
    let port = match port {
        None => 0,
        Some(first) => first.checked_add(index).ok_or_else(|| {
            Failure::input(format!(
                "--port {first} leaves no room for cluster c{}: ports end at 65535",
                index + 1
            ))
        })?,
    };
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}
