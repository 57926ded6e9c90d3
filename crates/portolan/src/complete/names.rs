//! Which argument names what.

use super::line::Line;
use super::lookup::{self, Source};
use crate::kind::Kind;
use clap::Command;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::sync::Arc;

/// What an argument names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// A context of the kubeconfig.
    Context,
    /// A context of the other cluster's kubeconfig.
    RemoteContext,
    /// A namespace.
    Namespace,
    /// A namespace of the other cluster.
    RemoteNamespace,
    /// Members of the fleet, each once.
    Members,
    /// CLUSTER=CONTEXT
    MemberContext,
    /// CLUSTER=, before something that only the user knows.
    OfMember,
    /// A kind, or KIND/NAME.
    Kind,
    /// Names of the kind that was given before.
    OfKind,
    /// KIND/NAME, or KIND NAME.
    Object,
    /// A SharingClass.
    SharingClass,
    /// An invitation.
    Invitation,
}

/// What an argument of a command names; nothing if it is free text, a path, or one of the words in its help.
pub(super) fn named(command: &str, argument: &str) -> Option<Names> {
    Some(match (command, argument) {
        (_, "context") => Names::Context,
        (_, "remote_context" | "from_context") => Names::RemoteContext,
        ("peer", "namespaces") => Names::RemoteNamespace,
        (_, "namespace" | "namespaces" | "lease_namespace") => Names::Namespace,
        (_, "contexts") => Names::MemberContext,
        ("peer", "latencies") => Names::OfMember,
        ("logs" | "events", "clusters") | ("adopt", "member") | ("unpeer", "name") => Names::Members,
        ("cordon" | "uncordon" | "doctor" | "accept-offer", "names") => Names::Members,
        ("share", "words") => Names::Members,
        ("share", "class") => Names::SharingClass,
        ("accept", "name") => Names::Invitation,
        ("get", "kind") => Names::Kind,
        ("get", "names") => Names::OfKind,
        ("status" | "logs" | "events" | "adopt", "object") | ("explain", "workload") => Names::Object,
        _ => return None,
    })
}

/// The command with what its arguments name, for this line.
pub(super) fn offered(command: Command, line: &Arc<Line>) -> Command {
    let of = command.get_name().to_owned();
    let command = command.mut_args(|argument| {
        let id = argument.get_id().as_str().to_owned();
        let Some(names) = named(&of, &id) else { return argument };
        let (of, line) = (of.clone(), line.clone());
        argument.add(ArgValueCompleter::new(move |current: &OsStr| {
            let current = current.to_str().unwrap_or_default();
            let found = names.found(&of, &id, &line, current).into_iter();
            found.filter(|name| name.starts_with(current)).map(CompletionCandidate::new).collect()
        }))
    });
    command.mut_subcommands(|inner| offered(inner, line))
}

impl Names {
    /// The names that begin with what is written of the current word, as the whole word.
    fn found(self, command: &str, argument: &str, line: &Line, current: &str) -> BTreeSet<String> {
        let list = |source: Source, begin: &str| lookup::list(&line.cluster(), &source, begin);
        match self {
            Self::Context => lookup::contexts(line.cluster().kubeconfig.as_deref()),
            Self::RemoteContext => lookup::contexts(line.remote().kubeconfig.as_deref()),
            Self::Namespace => list(Source::Namespaces, current),
            Self::RemoteNamespace if line.has("local") => list(Source::Namespaces, current),
            Self::RemoteNamespace => lookup::list(&line.remote(), &Source::Namespaces, current),
            Self::SharingClass => list(Source::SharingClasses, current),
            Self::Invitation => list(Source::Invitations, current),
            Self::Members => {
                let given = line.values(argument);
                // The second word of `share` is a percentage.
                if command == "share" && (!given.is_empty() || line.has("default")) {
                    return BTreeSet::new();
                }
                let mut names = list(Source::Objects(Kind::Cluster, None), current);
                names.retain(|name| !given.contains(name));
                names
            }
            Self::OfMember => joined(list(Source::Objects(Kind::Cluster, None), current), "="),
            Self::MemberContext => match current.split_once('=') {
                None => joined(list(Source::Objects(Kind::Cluster, None), current), "="),
                Some((member, _)) => {
                    let contexts = lookup::contexts(line.cluster().kubeconfig.as_deref());
                    contexts.iter().map(|context| format!("{member}={context}")).collect()
                }
            },
            Self::Kind => kind_or_object(command, line, current),
            Self::OfKind => {
                let kind = line.value("kind").unwrap_or_default();
                let mut names = of_kind(&kind, line, current);
                names.retain(|name| !line.values(argument).contains(name));
                names
            }
            Self::Object => match line.values(argument).first() {
                None => kind_or_object(command, line, current),
                Some(kind) => of_kind(kind, line, current),
            },
        }
    }
}

/// Kinds; behind a slash, the names of the kind.
fn kind_or_object(command: &str, line: &Line, current: &str) -> BTreeSet<String> {
    match current.split_once('/') {
        None => kinds(command).into_iter().map(str::to_owned).collect(),
        Some((kind, begin)) => {
            of_kind(kind, line, begin).iter().map(|name| format!("{kind}/{name}")).collect()
        }
    }
}

/// The names of a kind; nothing if the word is not a kind, or has a name already.
fn of_kind(word: &str, line: &Line, begin: &str) -> BTreeSet<String> {
    // What `get` calls offers are what members say.
    let word = if word == "offers" { Kind::Cluster.short() } else { word };
    let word = if word == "deployment" { Kind::Deployment.short() } else { word };
    let Some((kind, _)) = Kind::parse(word).ok().filter(|(_, names)| names.is_empty()) else {
        return BTreeSet::new();
    };
    let namespace = match (kind.namespaced(), line.has("all_namespaces")) {
        (true, false) => Some(line.value("namespace")),
        _ => None,
    };
    lookup::list(&line.cluster(), &Source::Objects(kind, namespace), begin)
}

/// The kinds that a command takes.
fn kinds(command: &str) -> Vec<&'static str> {
    let short = |kinds: &[Kind]| kinds.iter().map(|kind| kind.short()).collect::<Vec<_>>();
    let workloads = short(&Kind::WORKLOADS);
    match command {
        "get" => [short(&[Kind::Cluster]), workloads, short(&Kind::ELASTIC), vec!["offers"]].concat(),
        "status" => [short(&[Kind::Cluster]), workloads, short(&Kind::ELASTIC)].concat(),
        "events" => [workloads, short(&Kind::ELASTIC)].concat(),
        "logs" => [workloads, vec!["controller"]].concat(),
        "adopt" => short(&[Kind::Deployment]),
        _ => workloads,
    }
}

fn joined(names: BTreeSet<String>, suffix: &str) -> BTreeSet<String> {
    names.into_iter().map(|name| name + suffix).collect()
}
