//! The surroundings of the runtime.

use crate::store::DEFAULT_ROOT;
use std::path::{Path, PathBuf};
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
