//! From what was found to clusters, each once, with the command that comes next: pure.

use crate::commands::cluster_config::as_name;
use portolan_api::words::is_name;
use serde::Serialize;
use std::path::PathBuf;

/// A context of the kubeconfig, and what its cluster answers.
#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) name: String,
    pub(super) server: Option<String>,
    pub(super) answer: Answer,
}

/// What a cluster answers to the question who it is.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Known {
        /// The uid of its kube-system namespace.
        id: String,
        version: String,
    },
    /// It answers, and does not tell this user.
    Refuses(String),
    /// There is no answer.
    Silent(String),
}

/// A cluster as a manager of clusters tells it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Profile {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) id: Option<String>,
    pub(super) version: Option<String>,
    pub(super) servers: Vec<String>,
}

/// A cluster that has peered.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) name: String,
    pub(super) id: String,
}

/// The flags that the next command needs too.
#[derive(Clone, Debug, Default)]
pub(super) struct Flags {
    pub(super) context: Option<String>,
    pub(super) kubeconfig: Option<PathBuf>,
    pub(super) remote_kubeconfig: Option<PathBuf>,
}

/// How a cluster stands, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) enum State {
    Available,
    NotAllowed,
    NoContext,
    Unreachable,
    Peered,
    ThisCluster,
}

/// A cluster that could be peered, or is.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate {
    pub(super) name: String,
    pub(super) state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peered_as: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    pub(super) found_in: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    /// The command that comes next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
    /// What `-o name` prints.
    #[serde(skip)]
    pub(super) reference: String,
}

/// All clusters, each once: contexts and profiles of one cluster are one.
pub(super) fn merge(
    own: &str,
    peers: &[Peer],
    mut contexts: Vec<Context>,
    profiles: Vec<Profile>,
    flags: &Flags,
) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    // What is known for sure goes first, so that the others are recognised by their address.
    contexts.sort_by_key(|context| !matches!(context.answer, Answer::Known { .. }));
    for context in contexts {
        let mut candidate = of_context(context);
        let same = found.iter_mut().find(|each| each.is_same(&candidate));
        match same {
            Some(same) => same.found_in.append(&mut candidate.found_in),
            None => found.push(candidate),
        }
    }
    for profile in profiles {
        let mut candidate = of_profile(&profile);
        let by_server = |each: &Candidate| {
            each.server
                .as_ref()
                .is_some_and(|server| profile.servers.iter().any(|other| is_one(server, other)))
        };
        let same = found.iter_mut().find(|each| each.is_same(&candidate) || by_server(each));
        match same {
            Some(same) => {
                same.found_in.append(&mut candidate.found_in);
                // What a manager says helps where the cluster itself does not.
                same.id = same.id.take().or(candidate.id);
                same.version = same.version.take().or(candidate.version);
            }
            None => found.push(candidate),
        }
    }
    for each in &mut found {
        let is_own = each.id.as_deref() == Some(own);
        let peer = peers.iter().find(|peer| Some(&peer.id) == each.id.as_ref());
        each.peered_as = peer.map(|peer| peer.name.clone());
        each.state = match (is_own, &each.peered_as) {
            (true, _) => State::ThisCluster,
            (false, Some(_)) => State::Peered,
            (false, None) => each.state,
        };
        each.next = next(each, peers, flags);
    }
    found.sort_by(|one, other| (one.state, &one.name).cmp(&(other.state, &other.name)));
    found
}

fn of_context(context: Context) -> Candidate {
    let (state, id, version, message) = match context.answer {
        Answer::Known { id, version } => (State::Available, Some(id), Some(version), None),
        Answer::Refuses(why) => (State::NotAllowed, None, None, Some(why)),
        Answer::Silent(why) => (State::Unreachable, None, None, Some(why)),
    };
    Candidate {
        found_in: vec![format!("context {}", context.name)],
        reference: format!("context/{}", context.name),
        name: context.name,
        state,
        peered_as: None,
        id,
        server: context.server,
        version,
        message,
        next: None,
    }
}

fn of_profile(profile: &Profile) -> Candidate {
    Candidate {
        found_in: vec![format!("ClusterProfile {}/{}", profile.namespace, profile.name)],
        reference: format!("clusterprofile.multicluster.x-k8s.io/{}", profile.name),
        name: profile.name.clone(),
        state: State::NoContext,
        peered_as: None,
        id: profile.id.clone(),
        server: profile.servers.first().cloned(),
        version: profile.version.clone(),
        message: None,
        next: None,
    }
}

impl Candidate {
    /// Whether both are one cluster: by their identity or, if one of them does not tell it, by their address.
    fn is_same(&self, other: &Self) -> bool {
        match (&self.id, &other.id) {
            (Some(id), Some(other)) => id == other,
            _ => match (&self.server, &other.server) {
                (Some(server), Some(other)) => is_one(server, other),
                _ => false,
            },
        }
    }

    /// The context by which it is reached.
    fn context(&self) -> Option<&str> {
        self.reference.strip_prefix("context/")
    }
}

fn is_one(server: &str, other: &str) -> bool {
    server.trim_end_matches('/') == other.trim_end_matches('/')
}

/// The command that comes next.
fn next(candidate: &Candidate, peers: &[Peer], flags: &Flags) -> Option<String> {
    let hub = flags.of_hub();
    match (candidate.state, &candidate.peered_as, candidate.context()) {
        (State::ThisCluster, ..) => None,
        (State::Peered, Some(name), _) => Some(format!("portolan status clusters/{name}{hub}")),
        (State::Available, _, Some(context)) => {
            let is_taken = |name: &str| peers.iter().any(|peer| peer.name == name);
            let short = as_name(context);
            let name = if is_name(context) && !is_taken(context) {
                String::new()
            } else if is_name(&short) && !is_taken(&short) {
                format!(" --name {short}")
            } else {
                " --name NAME".to_owned()
            };
            let remote = flags.remote_kubeconfig.as_ref();
            let remote = remote.map(|file| format!(" --remote-kubeconfig {}", word(&file.to_string_lossy())));
            let remote = remote.unwrap_or_default();
            Some(format!(
                "portolan peer{hub}{remote} --remote-context {}{name} --namespace NAMESPACE",
                word(context)
            ))
        }
        (State::Unreachable, _, Some(context)) => {
            let file = flags.remote_kubeconfig.as_ref().or(flags.kubeconfig.as_ref());
            let file = file.map(|file| format!(" --kubeconfig {}", word(&file.to_string_lossy())));
            Some(format!("kubectl{} --context {} version", file.unwrap_or_default(), word(context)))
        }
        // The file has the line that `portolan invite` prints there.
        _ => Some(format!("portolan peer{hub} - < invitation")),
    }
}

impl Flags {
    /// Those that name this cluster.
    fn of_hub(&self) -> String {
        let context = self.context.as_ref().map(|context| format!(" --context {}", word(context)));
        let file =
            self.kubeconfig.as_ref().map(|file| format!(" --kubeconfig {}", word(&file.to_string_lossy())));
        context.unwrap_or_default() + &file.unwrap_or_default()
    }
}

/// A text as one word of a shell: a kubeconfig may come from elsewhere, and a name such as `$(…)` must not become a command.
fn word(text: &str) -> String {
    let is_plain = |each: char| each.is_ascii_alphanumeric() || "-_.:/@+=".contains(each);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(name: &str, id: &str) -> Context {
        let answer = Answer::Known { id: id.to_owned(), version: "v1.33.0".to_owned() };
        Context { name: name.to_owned(), server: Some(format!("https://{id}:6443")), answer }
    }

    fn profile(name: &str, id: Option<&str>, servers: &[&str]) -> Profile {
        Profile {
            name: name.to_owned(),
            namespace: "fleet".to_owned(),
            id: id.map(str::to_owned),
            version: Some("v1.32.0".to_owned()),
            servers: servers.iter().map(|server| (*server).to_owned()).collect(),
        }
    }

    fn peer(name: &str, id: &str) -> Peer {
        Peer { name: name.to_owned(), id: id.to_owned() }
    }

    fn lines(found: &[Candidate]) -> Vec<String> {
        let line = |each: &Candidate| {
            format!(
                "{} {:?} {} {}",
                each.name,
                each.state,
                each.peered_as.as_deref().unwrap_or("-"),
                each.found_in.len()
            )
        };
        found.iter().map(line).collect()
    }

    #[test]
    fn a_cluster_is_listed_once_however_often_it_is_found() {
        let contexts = vec![
            Context { answer: Answer::Refuses("no".to_owned()), ..known("guest@paris", "paris") },
            known("paris", "paris"),
            known("hub", "own"),
            known("admin@paris", "paris"),
            known("lyon", "lyon"),
        ];
        let profiles = vec![
            profile("p", Some("paris"), &[]),
            profile("l", None, &["https://x", "https://lyon:6443/"]),
            profile("oslo", Some("oslo"), &[]),
            profile("rome", Some("rome"), &[]),
        ];
        let peers = [peer("ly", "lyon"), peer("roma", "rome")];
        let found = merge("own", &peers, contexts, profiles, &Flags::default());
        assert_eq!(
            lines(&found),
            [
                "paris Available - 4",
                "oslo NoContext - 1",
                "lyon Peered ly 2",
                "rome Peered roma 1",
                "hub ThisCluster - 1",
            ]
        );
        assert_eq!(found[0].version.as_deref(), Some("v1.33.0"), "what the cluster says itself counts");
        let next: Vec<&str> = found.iter().map(|each| each.next.as_deref().unwrap_or("-")).collect();
        assert_eq!(next[0], "portolan peer --remote-context paris --namespace NAMESPACE");
        assert_eq!(next[1], "portolan peer - < invitation");
        assert_eq!((next[2], next[4]), ("portolan status clusters/ly", "-"));
    }

    #[test]
    fn one_that_does_not_answer_is_known_by_what_a_manager_says() {
        let silent = Context { answer: Answer::Silent("timed out".to_owned()), ..known("paris", "paris") };
        let profiles = vec![profile("p", Some("paris-id"), &["https://paris:6443"])];
        let found =
            merge("own", &[peer("paris", "paris-id")], vec![silent.clone()], profiles, &Flags::default());
        assert_eq!(lines(&found), ["paris Peered paris 2"]);
        assert_eq!(found[0].message.as_deref(), Some("timed out"));
        let alone = merge("own", &[], vec![silent], Vec::new(), &Flags::default());
        assert_eq!(alone[0].next.as_deref(), Some("kubectl --context paris version"));
    }

    #[test]
    fn the_next_command_has_the_flags_and_no_name_is_a_command() {
        let flags = Flags {
            context: Some("my hub".to_owned()),
            kubeconfig: Some("/k".into()),
            remote_kubeconfig: Some("/r s".into()),
        };
        let next = |name: &str, peers: &[Peer]| {
            merge("own", peers, vec![known(name, "x")], Vec::new(), &flags)[0].next.clone().unwrap()
        };
        let hub = "portolan peer --context 'my hub' --kubeconfig /k --remote-kubeconfig '/r s'";
        let end = "--namespace NAMESPACE";
        assert_eq!(next("paris", &[]), format!("{hub} --remote-context paris {end}"));
        assert_eq!(
            next("Admin@paris", &[]),
            format!("{hub} --remote-context Admin@paris --name admin-paris {end}")
        );
        assert_eq!(
            next("paris", &[peer("paris", "other")]),
            format!("{hub} --remote-context paris --name NAME {end}")
        );
        assert_eq!(next("$(id)'", &[]), format!(r"{hub} --remote-context '$(id)'\''' --name id {end}"));
    }
}
