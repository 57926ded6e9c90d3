//! Why a call fails, and how its caller is told.

use super::{ArgsError, BundleError, Refused};
use crate::archive::ArchiveError;
use crate::freezer::FreezerError;
use crate::store::StoreError;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;

/// Why a call of the runtime fails.
#[derive(Debug, thiserror::Error)]
pub enum WrapperError {
    /// The command line is not understood.
    #[error(transparent)]
    Args(#[from] ArgsError),
    /// The bundle cannot be read or changed.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The container is not to be made.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What the container had changed in its root file system cannot be brought back.
    #[error("the changes of the container's root file system cannot be applied: {0}")]
    RootfsDiff(#[from] ArchiveError),
    /// A path of the checkpoint leads elsewhere than it says.
    #[error(
        "the checkpoint refers to {path:?}, which leads through a link in the container{}: it is not restored",
        .to.as_ref().map_or_else(String::new, |to| format!(" to {to:?}"))
    )]
    Link {
        /// The path.
        path: PathBuf,
        /// Where it leads, if that is known.
        to: Option<PathBuf>,
    },
    /// The restored container cannot be left frozen.
    #[error("the restored container cannot be held: {0}")]
    Freezer(#[from] FreezerError),
    /// CRIU asks for something that it may not.
    #[error("CRIU asks to have {asked:?} frozen, which is not the cgroup of container {id}")]
    Cgroup {
        /// What it asks for.
        asked: String,
        /// The container.
        id: String,
    },
    /// The ID cannot be one.
    #[error("{id:?} cannot be the ID of a container: it has 1 to 128 letters, digits, '-', '_' and '.'")]
    Id {
        /// The ID, as far as it can be shown.
        id: String,
    },
    /// It ran, and was to stand still.
    #[error(
        "container {id} was not left frozen when it was restored, and was deleted: CRIU did not call its action script"
    )]
    NotHeld {
        /// The container.
        id: String,
    },
    /// runc failed. It has told why by itself.
    #[error("runc restore ended with {status}; why is in {work:?}/restore.log")]
    Restore {
        /// How it ended.
        status: String,
        /// CRIU's working folder.
        work: PathBuf,
    },
    /// runc does not end.
    #[error(
        "runc restore was not over within {seconds} s and was killed; how far it came is in {work:?}/restore.log"
    )]
    Hangs {
        /// How long it was waited for.
        seconds: u64,
        /// CRIU's working folder.
        work: PathBuf,
    },
    /// The system refuses it.
    #[error("cannot {what} {path:?}: {source}")]
    Io {
        /// What was to be done.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl WrapperError {
    pub(super) fn io(what: &'static str, path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        Self::Io { what, path: path.into(), source: source.into() }
    }

    /// Writes the error where containerd's shim looks for it: only that reaches the events of the pod.
    pub(super) fn tell(&self, log: Option<&OsStr>) {
        let message = format!("portolan-runc: {self}");
        let line = serde_json::json!({ "level": "error", "msg": message });
        if let Some(log) = log {
            let file = OpenOptions::new().append(true).create(true).open(log);
            // There is nobody left to tell if this fails as well, except for standard error below.
            let _ = file.and_then(|mut file| writeln!(file, "{line}"));
        }
        let _ = writeln!(io::stderr(), "{message}");
    }
}
