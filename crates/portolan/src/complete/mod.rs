//! Shell completion: the shells call this program to learn what may come next on a command line.
//!
//! A completion is quick and quiet: whatever fails, the shell gets fewer names, or none.

mod line;
mod lookup;
mod names;
mod quoting;
mod shell;
#[cfg(test)]
mod tests;

pub(crate) use shell::{Shell, program};

use crate::clean;
use crate::cli::Cli;
use clap::CommandFactory;
use clap_complete::engine::{CompletionCandidate, complete};
use line::Line;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// The variable by which a shell asks for a completion; its value is the shell.
const VARIABLE: &str = "PORTOLAN_COMPLETE";

/// The name by which kubectl calls the completion of a plugin.
const OF_KUBECTL: &str = "kubectl_complete-portolan";

/// How long a user waits at most. It includes plugins that fetch a credential, and what no timeout of a request ends.
const LIMIT: Duration = Duration::from_secs(3);

/// No list that a shell shows is longer.
const MOST: usize = 500;

/// One thing that may come next.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    value: String,
    help: String,
}

/// Answers a shell that asks for a completion; nothing if this is a run like any other.
pub(crate) fn answer() -> Option<ExitCode> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let program = arguments.first().map(|first| Path::new(first).file_stem().unwrap_or(first).to_owned());
    let shell = match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        Some(value) => Shell::named(&value.to_string_lossy()),
        None if program.is_some_and(|name| name == OF_KUBECTL) => Some(Shell::Kubectl),
        None => return None,
    };
    let from = if arguments.get(1).is_some_and(|first| first == "--") { 2 } else { 1 };
    arguments.drain(..from.min(arguments.len()));
    if let Some(shell) = shell {
        print(shell, arguments);
    }
    Some(ExitCode::SUCCESS)
}

/// Prints what may come next. A shell that does not read it, or an answer that takes too long, is no failure.
fn print(shell: Shell, arguments: Vec<OsString>) {
    // Nothing may stand between the user and the line that is being written.
    std::panic::set_hook(Box::new(|_| {}));
    let Some(asked) = shell.read(arguments) else { return };
    let words = asked.words.clone();
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || send.send(candidates(words)));
    let found = receive.recv_timeout(LIMIT).unwrap_or_default();
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(shell.answer(&asked, &found).as_bytes()).and_then(|()| out.flush());
}

/// What may come next on a command line: its words, of which the last one is being written.
fn candidates(words: Vec<String>) -> Vec<Candidate> {
    let Some(line) = Line::new(words).map(Arc::new) else { return Vec::new() };
    let mut command = names::offered(Cli::command(), &line);
    let folder = std::env::current_dir().ok();
    let words = line.words();
    let last = words.len() - 1;
    let found = complete(&mut command, words, last, folder.as_deref()).unwrap_or_default();
    let mut found: Vec<Candidate> = found.iter().filter_map(shown).collect();
    found.extend(line.flags_before_the_command());
    // Flags are offered to who begins one, as kubectl does.
    if !line.current().starts_with('-') {
        found.retain(|candidate| !candidate.value.starts_with('-'));
    }
    found.truncate(MOST);
    found
}

/// A candidate that can be printed.
fn shown(candidate: &CompletionCandidate) -> Option<Candidate> {
    let value = candidate.get_value().to_str()?.to_owned();
    let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
    let help = help.lines().next().unwrap_or_default().to_owned();
    is_printable(&value).then(|| Candidate { value, help: clean::line(&help) })
}

/// Whether a text is a line that no terminal obeys.
fn is_printable(text: &str) -> bool {
    !text.is_empty() && !text.contains(['\n', '\t']) && !clean::is_harmful(text)
}
