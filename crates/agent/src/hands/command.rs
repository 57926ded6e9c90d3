//! A command with a deadline, which ends with whoever waits for it, together with all that it started.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, Command};
use tokio::time::{Instant, timeout, timeout_at};

/// How many bytes of what a command says are kept: the last ones.
pub(super) const KEPT: usize = 2048;

/// How long what a command said last is waited for, after it has ended.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How a command fails.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It cannot be started.
    #[error("cannot be started ({0}): install it on the node, or correct its path in the agent's settings")]
    Start(io::ErrorKind),
    /// What it was started as cannot be written down.
    #[error("was ended, because its process cannot be written down ({0}): make room on the node's disk")]
    Record(io::ErrorKind),
    /// It does not end.
    #[error("was ended after {milliseconds} ms: the container hangs in the kernel, or the disk is too slow")]
    Late {
        /// How long it could have taken.
        milliseconds: u128,
    },
    /// It fails.
    #[error("ended with {status}: {said}")]
    Failed {
        /// With which code or signal.
        status: String,
        /// What it said last.
        said: String,
    },
}

/// The processes of a command: killed when this is dropped before the command has ended.
struct Group(Option<i32>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // If it is gone, all is well.
            killpg(Pid::from_raw(group), Signal::SIGKILL).ok();
        }
    }
}

/// Runs a command. `started` gets its process before anything else is done. When this is dropped, the command and all that it
/// started are killed.
pub(super) async fn run(
    mut command: Command,
    limit: Duration,
    started: impl FnOnce(u32) -> io::Result<()>,
) -> Result<(), CommandError> {
    let deadline = Instant::now() + limit;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // A group of its own, since runc starts CRIU.
    let spawned = command.kill_on_drop(true).process_group(0).spawn();
    let mut child = spawned.map_err(|error| CommandError::Start(error.kind()))?;
    let process = child.id().unwrap_or(0);
    let mut group = Group(i32::try_from(process).ok().filter(|group| *group > 1));
    started(process).map_err(|error| CommandError::Record(error.kind()))?;
    let mut said = Said { pipe: child.stderr.take(), bytes: Vec::new() };
    let ended = async {
        loop {
            tokio::select! {
                status = child.wait() => return status,
                () = said.more(), if said.pipe.is_some() => {}
            }
        }
    };
    let Ok(status) = timeout_at(deadline, ended).await else {
        return Err(CommandError::Late { milliseconds: limit.as_millis() });
    };
    group.0 = None;
    let status = status.map_err(|error| CommandError::Start(error.kind()))?;
    if status.success() {
        return Ok(());
    }
    let rest = async {
        while said.pipe.is_some() {
            said.more().await;
        }
    };
    timeout(LAST_WORDS, rest).await.ok();
    Err(CommandError::Failed { status: status.to_string(), said: clean(&said.bytes) })
}

/// What a command says.
struct Said {
    pipe: Option<ChildStderr>,
    bytes: Vec<u8>,
}

impl Said {
    /// Reads on. May be dropped while it waits.
    async fn more(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut buffer = [0; 1024];
        match pipe.read(&mut buffer).await {
            Ok(read) if read > 0 => {
                self.bytes.extend_from_slice(&buffer[..read]);
                let surplus = self.bytes.len().saturating_sub(KEPT);
                self.bytes.drain(..surplus);
            }
            _ => self.pipe = None,
        }
    }
}

/// One line without control characters.
fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    if words.is_empty() { "it said nothing".to_owned() } else { words.join(" ") }
}
