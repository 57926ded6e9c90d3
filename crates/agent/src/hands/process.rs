//! A process that was started before, maybe by an agent that has died.
//!
//! It is known by its ID and by when it started, never by its name. All functions block.

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;
use tokio::time::Instant;

/// How long it is looked whether killed processes are gone.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait in between.
const PAUSE: Duration = Duration::from_millis(10);
/// After so many looks they are killed once more: they may have started others meanwhile.
const AGAIN: u32 = 50;

/// A process of this boot of the node, the first of its group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Started {
    pub(super) process: i32,
    /// In ticks since the node was booted.
    pub(super) start: u64,
    pub(super) boot: String,
}

/// Something that was started and can be killed.
pub(super) trait Killable {
    /// Kills what is left of it, if wanted. Whether anything is left.
    fn is_left(&self, kill: bool) -> io::Result<bool>;
}

impl Killable for Started {
    /// With its group. One that is gone, or whose ID another one has by now, is left alone.
    fn is_left(&self, kill: bool) -> io::Result<bool> {
        if self.process <= 1 || self.boot != boot()? {
            return Ok(false);
        }
        let left = self.left()?;
        if kill && !left.is_empty() {
            self.kill(&left)?;
        }
        Ok(!left.is_empty())
    }
}

/// Several processes that are to end: all of them are killed before any is waited for.
pub(super) struct Ending<P> {
    left: Vec<P>,
    looks: u32,
    outcome: io::Result<()>,
}

impl<P: Killable> Ending<P> {
    /// Kills them.
    pub(super) fn new(all: Vec<P>) -> Self {
        let mut ending = Self { left: all, looks: 0, outcome: Ok(()) };
        ending.look();
        ending
    }

    fn look(&mut self) {
        let kill = self.looks.is_multiple_of(AGAIN);
        self.looks += 1;
        let outcome = &mut self.outcome;
        self.left.retain(|process| match process.is_left(kill) {
            Ok(left) => left,
            Err(error) => {
                if outcome.is_ok() {
                    *outcome = Err(error);
                }
                false
            }
        });
    }

    /// Waits for at most so long in all. Whether none is left.
    pub(super) fn wait(&mut self, limit: Duration) -> bool {
        let begin = Instant::now();
        while !self.left.is_empty() && begin.elapsed() < limit {
            thread::sleep(PAUSE);
            self.look();
        }
        self.left.is_empty()
    }

    /// Waits for as long as that may take, and says whether all have ended.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let ended = self.wait(PATIENCE);
        self.outcome.and(if ended { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) })
    }
}

/// What the kernel says about a process.
struct Stat {
    ended: bool,
    group: i32,
    start: u64,
}

impl Started {
    /// A process that runs.
    pub(super) fn of(process: u32) -> io::Result<Self> {
        let process = i32::try_from(process).map_err(io::Error::other)?;
        let stat = stat(process)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { process, start: stat.start, boot: boot()? })
    }

    fn kill(&self, left: &[i32]) -> io::Result<()> {
        let leads =
            stat(self.process)?.is_some_and(|stat| stat.start == self.start && stat.group == self.process);
        if leads {
            return gone_is_fine(killpg(Pid::from_raw(self.process), Signal::SIGKILL));
        }
        left.iter().try_for_each(|process| gone_is_fine(kill(Pid::from_raw(*process), Signal::SIGKILL)))
    }

    /// What of it still runs.
    pub(super) fn left(&self) -> io::Result<Vec<i32>> {
        let own = stat(self.process)?;
        if own.as_ref().is_some_and(|stat| stat.start != self.start) {
            // Another process has its ID, which the kernel gives away only when its group is gone as well.
            return Ok(Vec::new());
        }
        let mut left = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let Some(process) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let Some(stat) = stat(process)? else { continue };
            let belongs = process == self.process || (stat.group == self.process && stat.start >= self.start);
            if belongs && !stat.ended {
                left.push(process);
            }
        }
        Ok(left)
    }
}

fn gone_is_fine(killed: nix::Result<()>) -> io::Result<()> {
    match killed {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Kills one process, at once. One that is gone is fine.
pub(super) fn kill_one(process: i32) -> io::Result<()> {
    gone_is_fine(kill(Pid::from_raw(process), Signal::SIGKILL))
}

/// Which boot of the node this is.
pub(super) fn boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

fn stat(process: i32) -> io::Result<Option<Stat>> {
    let text = match fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat")) {
        // It may end while it is read.
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                || error.raw_os_error() == Some(Errno::ESRCH as i32) =>
        {
            return Ok(None);
        }
        text => text?,
    };
    let damaged = || io::Error::from(io::ErrorKind::InvalidData);
    // The name before it may have anything in it.
    let (_, fields) = text.rsplit_once(')').ok_or_else(damaged)?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let [state, _, group, ..] = fields[..] else { return Err(damaged()) };
    let start = fields.get(19).and_then(|start| start.parse().ok()).ok_or_else(damaged)?;
    let group = group.parse().map_err(|_| damaged())?;
    Ok(Some(Stat { ended: matches!(state, "Z" | "X"), group, start }))
}
