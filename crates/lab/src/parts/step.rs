//! What is told to the user while parts are made.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// One thing that happened while parts were made. Nothing is told when all of them are in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Another process is making parts; this one goes on when it is done.
    Waiting {
        /// The lock it holds.
        lock: PathBuf,
    },
    /// A part that is not in the cache is being made.
    Started {
        /// Its name.
        part: String,
    },
    /// A part was made.
    Finished {
        /// Its name.
        part: String,
        /// How long it took.
        took: Duration,
        /// Its size on disk.
        bytes: u64,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting { lock } => {
                write!(f, "waiting for another process that makes parts ({})", lock.display())
            }
            Self::Started { part } => write!(f, "making {part}"),
            Self::Finished { part, took, bytes } => {
                write!(f, "made {part} in {:.1} s, {} MB", took.as_secs_f64(), bytes / 1_000_000)
            }
        }
    }
}
