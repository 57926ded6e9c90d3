//! Why the store cannot do something.

use crate::Name;
use crate::tree::RemoveError;
use std::io;
use std::path::{Path, PathBuf};

/// Why the store cannot do something.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no room.
    #[error(
        "a checkpoint of {bytes} bytes does not fit into {root:?}: {free} bytes are free and {stays_free} have to stay \
         free; make room on the node, or lower limits.maxCheckpointSize"
    )]
    NoRoom {
        /// The folder of the store.
        root: PathBuf,
        /// What was to be stored.
        bytes: u64,
        /// What is free.
        free: u64,
        /// What has to stay free.
        stays_free: u64,
    },
    /// There is a checkpoint already.
    #[error(
        "{path:?} exists: a container has one checkpoint in a migration; remove the migration's files first"
    )]
    Exists {
        /// Its folder.
        path: PathBuf,
    },
    /// The pod may have run.
    #[error(
        "migration {migration} is committed: its pod may have run, and does not go back to its checkpoint"
    )]
    Live {
        /// The migration.
        migration: Name,
    },
    /// The checkpoints are for another pod.
    #[error(
        "the checkpoints of migration {migration} are for the pod with UID {owner}, and the pod with UID {pod} asks for them"
    )]
    Owner {
        /// The migration.
        migration: Name,
        /// The UID of the pod that they are for.
        owner: String,
        /// The UID of the pod that asks.
        pod: Name,
    },
    /// Something cannot be removed.
    #[error(transparent)]
    Remove(#[from] RemoveError),
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

impl StoreError {
    pub(super) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), source }
    }
}
