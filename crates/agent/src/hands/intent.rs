//! A dump, as it is written down: before it is started, and once more when its process is known.
//!
//! An agent may die in between, and then the process is known by what stands in its environment. All functions block.

use super::process::{Killable, Started, boot, kill_one};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The variable in the environment of a dump. What the dump starts inherits it.
pub(super) const VARIABLE: &str = "PORTOLAN_DUMP";

/// A dump that is about to be started, or was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Intent {
    /// CRIU's working folder, which no other dump has: the value of the variable.
    pub(super) work: PathBuf,
    pub(super) boot: String,
}

impl Intent {
    /// A dump of this boot of the node.
    pub(super) fn of(work: &Path) -> io::Result<Self> {
        Ok(Self { work: work.to_owned(), boot: boot()? })
    }

    /// What of it runs.
    fn left(&self) -> io::Result<Vec<i32>> {
        let mut entry = VARIABLE.as_bytes().to_vec();
        entry.push(b'=');
        entry.extend_from_slice(self.work.as_os_str().as_encoded_bytes());
        let mut left = Vec::new();
        for process in fs::read_dir("/proc")? {
            let process = process?;
            let Some(id) = process.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            // It may end while it is read, and then there is nothing in it. Whose it is that may not be read was not started here.
            let environment = fs::read(process.path().join("environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|found| found == entry) {
                left.push(id);
            }
        }
        Ok(left)
    }
}

impl Killable for Intent {
    fn is_left(&self, kill: bool) -> io::Result<bool> {
        if self.boot != boot()? {
            return Ok(false);
        }
        let left = self.left()?;
        if kill {
            left.iter().try_for_each(|process| kill_one(*process))?;
        }
        Ok(!left.is_empty())
    }
}

/// A dump that was written down.
pub(super) enum Recorded {
    /// Its process is known.
    Started(Started),
    /// It is not.
    Intended(Intent),
}

impl Killable for Recorded {
    fn is_left(&self, kill: bool) -> io::Result<bool> {
        match self {
            Self::Started(started) => started.is_left(kill),
            Self::Intended(intent) => intent.is_left(kill),
        }
    }
}
