//! The cgroups of a pod, in the layout of the kubelet's driver `cgroupfs`. All functions block.

use super::process::kill_one;
use super::{NodeError, Settings};
use crate::session::Pod;
use portolan_core::migration::source::Frozen;
use portolan_node::Name;
use portolan_node::freezer::{CgroupFiles, Held, PodFreezer};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Pods of class Guaranteed lie directly in the folder of all pods.
const CLASSES: [&str; 3] = ["", "burstable", "besteffort"];

/// How often processes are listed until all of them were killed. What is frozen makes no new ones.
const ROUNDS: u32 = 10;

/// The pod that a cgroup is looked for, and the UID that it has on this node.
#[derive(Clone, Copy)]
pub(super) struct PodOnNode<'a> {
    pub(super) pod: &'a Pod,
    pub(super) uid: &'a str,
}

impl PodOnNode<'_> {
    /// The cgroup of the pod; none if it has none. That cgroups cannot be seen is an error, never an absence.
    pub(super) fn cgroup(self, settings: &Settings) -> Result<Option<PathBuf>, NodeError> {
        Name::new("UID of a pod", self.uid)?;
        let pods = settings.cgroups.join("kubepods");
        if !exists(&pods)? {
            return Err(NodeError::NoPods { path: pods });
        }
        for class in CLASSES {
            let folder = pods.join(class).join(format!("pod{}", self.uid));
            if exists(&folder)? {
                return Ok(Some(folder));
            }
        }
        Ok(None)
    }

    /// As [`PodOnNode::cgroup`], of a pod that must be there.
    pub(super) fn need_cgroup(self, settings: &Settings) -> Result<PathBuf, NodeError> {
        self.cgroup(settings)?.ok_or_else(|| NodeError::NoCgroup {
            pod: self.pod.to_string(),
            uid: self.uid.to_owned(),
            root: settings.cgroups.clone(),
        })
    }

    /// The freezer of these containers.
    pub(super) fn freezer<F: CgroupFiles + Clone>(
        self,
        cgroup: &Path,
        ids: &BTreeSet<String>,
        files: &F,
    ) -> Result<PodFreezer<F>, NodeError> {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let opened = PodFreezer::with_files(cgroup, &ids, files.clone());
        opened.map_err(|source| NodeError::Freezer { pod: self.pod.to_string(), what: "found", source })
    }

    /// What of these containers stands still.
    pub(super) fn frozen<F: CgroupFiles + Clone>(
        self,
        cgroup: &Path,
        ids: &BTreeSet<String>,
        files: &F,
    ) -> Result<Frozen, NodeError> {
        let held = self.freezer(cgroup, ids, files)?.held();
        match held.map_err(|source| NodeError::Freezer {
            pod: self.pod.to_string(),
            what: "looked at",
            source,
        })? {
            Held::None => Ok(Frozen::None),
            Held::Partly => Ok(Frozen::Partly),
            Held::All => Ok(Frozen::All),
        }
    }

    /// Kills all processes of these containers while they stand still; only then lets the kernel end them.
    pub(super) fn kill<F: CgroupFiles + Clone>(
        self,
        cgroup: &Path,
        ids: &BTreeSet<String>,
        files: &F,
    ) -> Result<(), NodeError> {
        let freezer = self.freezer(cgroup, ids, files)?;
        let failed = |what| move |source| NodeError::Freezer { pod: self.pod.to_string(), what, source };
        // A process that runs could start others, and end by a signal that it handles.
        freezer.hold().map_err(failed("held"))?;
        let mut killed = BTreeSet::new();
        for _ in 0..ROUNDS {
            let mut found = BTreeSet::new();
            for id in ids {
                processes(&cgroup.join(id), &mut found)?;
            }
            let new: Vec<i32> = found.difference(&killed).copied().collect();
            if new.is_empty() {
                // Their signal is waiting: they wake up to end.
                return match freezer.thaw() {
                    Ok(()) => Ok(()),
                    // They ended meanwhile, and their cgroups with them.
                    Err(_) if ids.iter().all(|id| !cgroup.join(id).exists()) => Ok(()),
                    Err(source) => Err(failed("released after it was killed")(source)),
                };
            }
            for process in new {
                kill_one(process).map_err(|error| NodeError::Kill {
                    pod: self.pod.to_string(),
                    process,
                    kind: error.kind(),
                })?;
                killed.insert(process);
            }
        }
        Err(NodeError::state(self.pod, "its containers make new processes although they are frozen"))
    }
}

/// The cgroups in the one of a pod: containers and sandboxes, by their IDs.
pub(super) fn children(cgroup: &Path) -> Result<BTreeSet<String>, NodeError> {
    let mut ids = BTreeSet::new();
    let Some(entries) = gone_is_none(fs::read_dir(cgroup)).map_err(NodeError::io("list", cgroup))? else {
        return Ok(ids);
    };
    for entry in entries {
        let entry = entry.map_err(NodeError::io("list", cgroup))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Ok(id) = entry.file_name().into_string()
        {
            ids.insert(id);
        }
    }
    Ok(ids)
}

/// The processes in a cgroup, and in those in it.
pub(super) fn processes(cgroup: &Path, found: &mut BTreeSet<i32>) -> Result<(), NodeError> {
    let list = cgroup.join("cgroup.procs");
    let text = gone_is_none(fs::read_to_string(&list)).map_err(NodeError::io("read", &list))?;
    // Zero is a process that this agent cannot see.
    found.extend(
        text.unwrap_or_default()
            .lines()
            .filter_map(|line| line.trim().parse().ok())
            .filter(|id: &i32| *id > 1),
    );
    for inner in children(cgroup)? {
        processes(&cgroup.join(inner), found)?;
    }
    Ok(())
}

/// Whether no process is in a cgroup or in those in it.
pub(super) fn is_empty(cgroup: &Path) -> Result<bool, NodeError> {
    let mut found = BTreeSet::new();
    processes(cgroup, &mut found)?;
    Ok(found.is_empty())
}

/// Whether a file or folder is there; that this cannot be seen is an error.
pub(super) fn exists(path: &Path) -> Result<bool, NodeError> {
    path.try_exists().map_err(NodeError::io("look at", path))
}

/// None for what is not there. A cgroup can go while it is read.
pub(super) fn gone_is_none<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                || error.raw_os_error() == Some(nix::errno::Errno::ENODEV as i32) =>
        {
            Ok(None)
        }
        read => read.map(Some),
    }
}

/// One lock for each pod, so that what freezes and what thaws do not meet.
#[derive(Clone, Default)]
pub(super) struct Locks(Arc<Mutex<BTreeMap<Pod, Arc<tokio::sync::Mutex<()>>>>>);

impl Locks {
    /// Waits for the lock of a pod. Give it to the thread that does the work: dropping who waits for that does not end it.
    pub(super) async fn lock(&self, pod: &Pod) -> tokio::sync::OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            locks.retain(|other, lock| other == pod || Arc::strong_count(lock) > 1);
            Arc::clone(locks.entry(pod.clone()).or_default())
        };
        lock.lock_owned().await
    }
}
