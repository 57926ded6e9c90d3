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
    let names = names(args)?;
    for (index, name) in names.iter().enumerate() {
        let node = NodeConfig::new(&args.cpu, &args.memory);
        let config = ClusterConfig::named(name)
            .nodes(usize::from(args.nodes), node)
            .profile(profile.clone())
            .heartbeats(args.heartbeats);
        let cluster = world.add_cluster(config);
        served.push(cluster.serve("kubectl", address(args.port, index, name)?).await.map_err(|error| {
            Failure::other(format!("cannot serve cluster {name}: {error}"))
                .hint("another program may use that port; leave --port out to take free ones")
        })?);
    }
    let place = Place::new("sandbox", args.kubeconfig.as_deref())?;
    place.write(&served)?;
    let listed =
        served.iter().map(|each| format!("  {}  {}\n", each.cluster(), each.url())).collect::<String>();
    let (clusters, nodes) = (count(names.len(), "cluster"), count(usize::from(args.nodes), "node"));
    eprint!("{clusters} with {nodes} each:\n{listed}\n");
    output::data(&format!("export KUBECONFIG={}\n", place.file().display()))?;
    let first = names.first().map_or("c1", String::as_str);
    eprintln!("\nTry `kubectl --context {first} get nodes`. Ctrl-C ends it; nothing is kept.");
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

/// The names of the clusters: those given, or c1, c2 and so on.
fn names(args: &SandboxUpArgs) -> Result<Vec<String>, Failure> {
    if args.names.is_empty() {
        return Ok((1..=args.clusters).map(|number| format!("c{number}")).collect());
    }
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    for (position, name) in args.names.iter().enumerate() {
        let valid = (1..=63).contains(&name.len()) && name.bytes().all(letter) && !name.starts_with('-');
        if !valid || name.ends_with('-') {
            return Err(Failure::input(format!("--names: {name:?} cannot be the name of a cluster"))
                .hint("give names of at most 63 lower-case letters, digits and dashes, such as hub,paris"));
        }
        if args.names[..position].contains(name) {
            return Err(Failure::input(format!("--names: {name} is given twice")));
        }
    }
    Ok(args.names.clone())
}

/// So many of something, in words.
fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn address(port: Option<u16>, index: usize, name: &str) -> Result<SocketAddr, Failure> {
    let port = match port {
        None => 0,
        Some(first) => {
            u16::try_from(index).ok().and_then(|index| first.checked_add(index)).ok_or_else(|| {
                Failure::input(format!(
                    "--port {first} leaves no room for cluster {name}: ports end at 65535"
                ))
            })?
        }
    };
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}
