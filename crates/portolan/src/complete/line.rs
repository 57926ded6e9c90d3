//! The command line that is completed, up to the cursor.

use super::Candidate;
use crate::cli::{Cli, ClusterArgs, MOVED, Ordered};
use clap::{ArgMatches, Command, CommandFactory};
use std::ffi::OsString;
use std::path::PathBuf;

/// A command that takes all the flags that may stand before a command.
const ANY_COMMAND: &str = "status";

/// A command line: what was given already, and the word that is being written.
pub(super) struct Line {
    before: Vec<OsString>,
    current: String,
    has_command: bool,
    given: Option<ArgMatches>,
}

impl Line {
    /// The line of these words, the program first. The last word is being written.
    pub(super) fn new(mut words: Vec<String>) -> Option<Self> {
        let current = words.pop()?;
        let parts = Ordered::new(words.into_iter().map(OsString::from).collect());
        let has_command = !parts.rest.is_empty();
        let awaits_value = parts.moved.last().is_some_and(|last| MOVED.iter().any(|flag| last == flag));
        let has_value = MOVED.iter().any(|flag| current.starts_with(&format!("{flag}=")));
        let mut before = parts.program;
        let mut rest = parts.rest.into_iter();
        before.extend(rest.next());
        if has_command || awaits_value || has_value {
            before.extend((!has_command).then(|| OsString::from(ANY_COMMAND)));
            before.extend(parts.moved);
        }
        before.extend(rest);
        if before.is_empty() {
            return None;
        }
        let given = partly(Cli::command()).try_get_matches_from(&before).ok().map(innermost);
        Some(Self { before, current, has_command, given })
    }

    /// All words.
    pub(super) fn words(&self) -> Vec<OsString> {
        self.before.iter().cloned().chain([OsString::from(&self.current)]).collect()
    }

    /// The word that is being written.
    pub(super) fn current(&self) -> &str {
        &self.current
    }

    /// What was given for an argument.
    pub(super) fn values(&self, argument: &str) -> Vec<String> {
        let raw = self.given.as_ref().and_then(|given| given.try_get_raw(argument).ok().flatten());
        raw.into_iter().flatten().filter_map(|value| value.to_str().map(str::to_owned)).collect()
    }

    /// What was given last for an argument.
    pub(super) fn value(&self, argument: &str) -> Option<String> {
        self.values(argument).pop()
    }

    /// Whether a flag was given.
    pub(super) fn has(&self, flag: &str) -> bool {
        self.value(flag).is_some_and(|value| value == "true")
    }

    /// The cluster that the command is about.
    pub(super) fn cluster(&self) -> ClusterArgs {
        ClusterArgs { kubeconfig: self.file("kubeconfig"), context: self.value("context") }
    }

    /// The other cluster that the command is about.
    pub(super) fn remote(&self) -> ClusterArgs {
        let file = self.file("remote_kubeconfig").or_else(|| self.file("kubeconfig"));
        ClusterArgs { kubeconfig: file, context: self.value("remote_context") }
    }

    fn file(&self, argument: &str) -> Option<PathBuf> {
        self.value(argument).map(|path| expanded(&path))
    }

    /// The flags that may stand before the command, if the line has no command yet and one of them is being written.
    pub(super) fn flags_before_the_command(&self) -> Vec<Candidate> {
        let begins =
            |flag: &&&str| !self.has_command && flag.starts_with("--") && flag.starts_with(&self.current);
        let asked = self.current.starts_with('-');
        let flags = MOVED.iter().filter(begins).filter(|_| asked);
        flags.map(|flag| Candidate { value: (*flag).to_owned(), help: String::new() }).collect()
    }
}

/// The command, content with a part of its arguments.
fn partly(command: Command) -> Command {
    command.ignore_errors(true).mut_subcommands(partly)
}

/// What was given to the command itself.
fn innermost(given: ArgMatches) -> ArgMatches {
    match given.subcommand() {
        Some((_, inner)) => innermost(inner.clone()),
        None => given,
    }
}

/// A path as the shell would expand it: completions see lines before that.
fn expanded(path: &str) -> PathBuf {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let variable = first.strip_prefix('$').map(|name| name.trim_start_matches('{').trim_end_matches('}'));
    let found = match variable {
        Some(name) => std::env::var_os(name).map(PathBuf::from),
        None if first == "~" => std::env::home_dir(),
        None => None,
    };
    found.map_or_else(
        || PathBuf::from(path),
        |folder| if rest.is_empty() { folder } else { folder.join(rest) },
    )
}
