//! The program: reads its surroundings, has it decided what to do, and does it.

use super::freeze::RunFiles;
use super::restore::{Waited, restore, wait};
use super::{Bundle, Command, Create, Invocation, Plan, Request, WrapperError, decide};
use crate::store::{DEFAULT_ROOT, Mark, Store};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::time::Duration;

/// The surroundings of the runtime.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The real runtime.
    pub runc: PathBuf,
    /// The store of checkpoints.
    pub store: PathBuf,
    /// The folder for files that live as long as a container.
    pub run: PathBuf,
    /// Where the freezer of cgroup v1 is mounted.
    pub freezer: PathBuf,
    /// Where cgroup v2 is mounted.
    pub unified: PathBuf,
    /// How long a checkpoint is waited for after the agent has last said that it works on the migration, and how long a restore
    /// may take. The kubelet itself waits for its `runtimeRequestTimeout`, which is two minutes unless it is set.
    pub wait: Duration,
    /// How long it sleeps before it looks again. All of it is downtime.
    pub pause: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let hybrid = Path::new("/sys/fs/cgroup/unified");
        let unified = if hybrid.exists() { hybrid } else { Path::new("/sys/fs/cgroup") };
        Self {
            runc: PathBuf::from("runc"),
            store: PathBuf::from(DEFAULT_ROOT),
            run: PathBuf::from("/run/portolan/runc"),
            freezer: PathBuf::from("/sys/fs/cgroup/freezer"),
            unified: unified.to_owned(),
            wait: Duration::from_secs(100),
            pause: Duration::from_millis(2),
        }
    }
}

impl Settings {
    /// How often it looks until `wait` is over.
    pub(super) fn looks(&self) -> u128 {
        self.wait.as_millis() / self.pause.as_millis().max(1)
    }
}

/// Runs the runtime with the words after its name.
#[must_use]
pub fn main(words: &[OsString], settings: &Settings) -> ExitCode {
    let invocation = match Invocation::parse(words) {
        Ok(invocation) => invocation,
        Err(error) => {
            WrapperError::from(error).tell(log_of(words));
            return ExitCode::FAILURE;
        }
    };
    match act(&invocation, settings) {
        Ok(Done::Complete) => ExitCode::SUCCESS,
        Ok(Done::Exec) => {
            // Only returns if it fails.
            let error = process::Command::new(&settings.runc).args(words).exec();
            WrapperError::io("run", &settings.runc, error).tell(invocation.log.as_deref());
            ExitCode::FAILURE
        }
        Err(error) => {
            error.tell(invocation.log.as_deref());
            ExitCode::FAILURE
        }
    }
}

/// Whether anything is left to do.
enum Done {
    /// runc is to do it.
    Exec,
    /// It is done.
    Complete,
}

fn act(invocation: &Invocation, settings: &Settings) -> Result<Done, WrapperError> {
    let mut annotations = BTreeMap::new();
    let mut bundle = None;
    if let Command::Create(create) | Command::Run(create) = &invocation.command {
        let read = Bundle::read(Path::new(create.bundle.as_deref().unwrap_or(OsStr::new("."))))?;
        annotations = read.annotations();
        bundle = Some(read);
    }
    let restored = match &invocation.command {
        Command::Start { id: container } => {
            id(container).is_ok_and(|id| RunFiles::new(&settings.run, &id).restored().exists())
        }
        Command::Delete { id: container } => {
            if let Ok(id) = id(container) {
                RunFiles::new(&settings.run, &id).remove();
            }
            false
        }
        _ => false,
    };
    match (decide(invocation, &annotations, restored)?, &invocation.command, bundle) {
        (Plan::Nothing, ..) => Ok(Done::Complete),
        (Plan::Restore(request), Command::Create(create), Some(bundle)) => {
            restored_or_fresh(invocation, create, bundle, &request, settings)
        }
        _ => Ok(Done::Exec),
    }
}

fn restored_or_fresh(
    invocation: &Invocation,
    create: &Create,
    bundle: Bundle,
    request: &Request,
    settings: &Settings,
) -> Result<Done, WrapperError> {
    // An ID that is none is found out before a checkpoint is used for it.
    id(&create.id)?;
    let store = Store::new(&settings.store);
    match wait(request, &store, settings)? {
        Waited::Fresh => Ok(Done::Exec),
        Waited::Taken(taken) => {
            let frozen = store.has(&request.migration, Mark::Frozen);
            restore(invocation, create, bundle, &taken, frozen, settings)?;
            Ok(Done::Complete)
        }
    }
}

/// The ID of a container, which becomes part of paths.
pub(super) fn id(id: &OsStr) -> Result<String, WrapperError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match id.to_str() {
        Some(text)
            if (1..=128).contains(&text.len()) && text.chars().all(plain) && !text.starts_with('.') =>
        {
            Ok(text.to_owned())
        }
        _ => Err(WrapperError::Id { id: id.to_string_lossy().chars().take(64).collect() }),
    }
}

/// The file for errors, from a command line that is not understood.
fn log_of(words: &[OsString]) -> Option<&OsStr> {
    let after = words.iter().position(|word| word == "--log").and_then(|place| words.get(place + 1));
    after.map(OsString::as_os_str)
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
