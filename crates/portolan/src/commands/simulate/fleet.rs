//! `portolan simulate --from-fleet`: the fleet of a hub as the beginning of a scenario. Nothing is written to any cluster.

use super::source::Source;
use super::wrong;
use crate::cli::SimulateArgs;
use crate::commands::members;
use crate::failure::Failure;
use crate::{clean, connection, output};
use anstream::eprintln;
use jiff::Timestamp;
use kube::Client;
use portolan_api::ForeignCluster;
use portolan_simulator::{
    Assumption, FleetState, MemberState, Unread, convert, join, load, read_hub, read_member,
};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A scenario that begins with a fleet.
pub(super) struct Fleet {
    /// The scenario, with what the user wants to happen.
    pub(super) source: Source,
    assumptions: Vec<Assumption>,
    read_at: Timestamp,
}

/// Reads the fleet, and adds the scenario of the user to it. What is assumed is told on standard error.
pub(super) fn read(args: &SimulateArgs, given: Option<Source>) -> Result<Fleet, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let state = runtime.block_on(Box::pin(ask(args)))?;
    if state.hub.clusters.is_empty() {
        return Err(
            Failure::other("the hub has no members").hint("`portolan peer` adds a cluster to the fleet")
        );
    }
    let read_at = Timestamp::now();
    let converted = convert(&state, read_at);
    tell(&converted.assumptions);
    let given = given.unwrap_or_else(|| Source { label: "fleet".to_owned(), ..Source::default() });
    let text = join(&converted.scenario, &given.name, &given.text).map_err(|error| wrong(&error))?;
    let name = match given.name.as_str() {
        "" => "the fleet".to_owned(),
        file => format!("the fleet with {file}"),
    };
    let source = Source { name, text, label: given.label, folder: given.folder };
    Ok(Fleet { source, assumptions: converted.assumptions, read_at })
}

async fn ask(args: &SimulateArgs) -> Result<FleetState, Failure> {
    let contexts = members::contexts(&args.contexts)?;
    let (hub, _) = connection::answering(&args.cluster).await?;
    let read = read_hub(&hub).await.map_err(|error| {
        let failure = Failure::call(&error);
        match error.code() {
            Some(403) => failure.hint(crate::failure::RIGHTS),
            Some(404) => failure.hint("the hub does not have Portolan's custom resource definitions"),
            _ => failure,
        }
    })?;
    let name = |cluster: &ForeignCluster| cluster.metadata.name.clone().unwrap_or_default();
    for unknown in contexts.keys().filter(|each| !read.clusters.iter().any(|cluster| name(cluster) == **each))
    {
        eprintln!("warning: --member-context {}: the hub has no such member", clean::line(unknown));
    }
    let mut members = BTreeMap::new();
    for cluster in &read.clusters {
        members.insert(name(cluster), member(args, &contexts, &hub, cluster).await);
    }
    Ok(FleetState { hub: read, members })
}

async fn member(
    args: &SimulateArgs,
    contexts: &BTreeMap<String, String>,
    hub: &Client,
    cluster: &ForeignCluster,
) -> MemberState {
    match members::client(&args.cluster, contexts, hub, cluster).await {
        Ok(client) => read_member(&client, cluster.metadata.name.as_deref().unwrap_or_default()).await,
        Err(failure) => {
            let unread = Unread::new(failure.message());
            MemberState::unread(&match failure.hints().last() {
                Some(hint) => unread.hint(hint),
                None => unread,
            })
        }
    }
}

fn tell(assumptions: &[Assumption]) {
    let (bold, reset) = ("\u{1b}[1m", "\u{1b}[0m");
    for each in assumptions {
        eprintln!("{bold}assumed{reset}: {}", clean::line(&each.to_string()));
        if let Some(hint) = &each.hint {
            eprintln!("  {bold}hint{reset}: {}", clean::line(hint));
        }
    }
}

impl Fleet {
    /// Writes the scenario, with what it assumes as comments.
    pub(super) fn write(&self, file: &Path) -> Result<(), Failure> {
        let scenario = load(&self.source.name, &self.source.text, None).map_err(|error| wrong(&error))?;
        let mut text = format!("# A fleet as it was at {}.\n", self.read_at);
        for each in &self.assumptions {
            text.push_str(&format!("# {}\n", clean::line(&each.to_string())));
        }
        text.push_str(&serde_saphyr::to_string(&scenario).map_err(Failure::other)?);
        if file == Path::new("-") {
            return output::data(&text);
        }
        let written = OpenOptions::new().write(true).create_new(true).open(file);
        written.and_then(|mut open| open.write_all(text.as_bytes())).map_err(|error| {
            let failure = Failure::other(format!("cannot write {}: {error}", file.display()));
            match error.kind() {
                // It may have been edited since.
                ErrorKind::AlreadyExists => {
                    failure.hint("give a file that does not exist by --write, or remove this one")
                }
                _ => failure.hint("give a file in a directory that you may write to by --write"),
            }
        })?;
        let shown: PathBuf = file.to_owned();
        eprintln!("{} written; `portolan simulate {0}` plays it without the hub", shown.display());
        Ok(())
    }
}
