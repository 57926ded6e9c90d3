//! Why a pod cannot be frozen or thawed.

use std::io;
use std::path::PathBuf;

/// Why a pod cannot be frozen or thawed.
#[derive(Debug, thiserror::Error)]
pub enum FreezerError {
    /// There is no freezer.
    #[error(
        "{folder:?} has neither freezer.state nor cgroup.freeze: the pod is gone, or the node has no freezer mounted"
    )]
    NoFreezer {
        /// The cgroup folder of the pod.
        folder: PathBuf,
    },
    /// A container's name cannot be one.
    #[error(
        "{container:?} cannot be the name of a container's cgroup: it has letters, digits, '-', '_', '.' and ':'"
    )]
    Name {
        /// The name.
        container: String,
    },
    /// A container is not there.
    #[error("container cgroup {folder:?} does not exist: the container is not running")]
    NoContainer {
        /// Its cgroup folder.
        folder: PathBuf,
    },
    /// It does not come to a standstill.
    #[error(
        "cgroup {folder:?} is not frozen after it was looked at {asked} times: a process in it hangs in the kernel"
    )]
    NotFrozen {
        /// The cgroup folder.
        folder: PathBuf,
        /// How often it was looked at.
        asked: u32,
    },
    /// It stands still although it was thawed.
    #[error("the pod in {folder:?} is still frozen after it was thawed: something else freezes it")]
    StillFrozen {
        /// The cgroup folder of the pod.
        folder: PathBuf,
    },
    /// A file cannot be read.
    #[error("cannot read {path:?}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {text} to {path:?}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What was to be written.
        text: &'static str,
        /// Why.
        source: io::Error,
    },
}
