//! Freezes all containers of a pod at one instant, holds them, and sets all of them going at one instant.
//!
//! The pod's own cgroup is the parent of its containers. It stops and starts all of them at once, but must not stay
//! frozen: a dump of a container whose parent is frozen hangs, and so does the pod's deletion. So the pod is frozen, then each container
//! by itself, then the pod is thawed, and the containers stay frozen by themselves. Thawing goes the same way back. Both can
//! be repeated after a crash at any point.

mod error;
#[cfg(test)]
mod fake;
mod kernel;
#[cfg(test)]
mod real_tests;
#[cfg(test)]
mod tests;

pub use error::FreezerError;
pub use kernel::{CgroupFiles, Kernel};

use std::path::{Path, PathBuf};

/// Which of the two interfaces of the kernel the freezer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// cgroup v1: a hierarchy of its own, with `freezer.state`.
    V1,
    /// cgroup v2: `cgroup.freeze` in the one hierarchy.
    V2,
}

/// What stands still of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// No container is frozen, nor the pod.
    None,
    /// Something is frozen, but not as it should be held.
    Partly,
    /// Every container is frozen by itself, and the pod's cgroup is not.
    All,
}

/// The freezer of one pod.
#[derive(Clone, Debug)]
pub struct PodFreezer<Files = Kernel> {
    interface: Interface,
    pod: PathBuf,
    containers: Vec<PathBuf>,
    files: Files,
}

/// How often the kernel is asked before it is given up; the pauses in between are of the files' making.
const PATIENCE: u32 = 2_000;

/// The same for a thaw, which is to be over within a second.
const THAW_PATIENCE: u32 = 400;

impl PodFreezer<Kernel> {
    /// The freezer of the pod with this cgroup folder and these containers in it.
    ///
    /// # Errors
    /// The folder is no cgroup with a freezer, or a container's name could lead out of it.
    pub fn open(pod: &Path, containers: &[&str]) -> Result<Self, FreezerError> {
        Self::with_files(pod, containers, Kernel)
    }
}

impl<Files: CgroupFiles> PodFreezer<Files> {
    /// The same with other files beneath.
    ///
    /// # Errors
    /// As [`PodFreezer::open`].
    pub fn with_files(pod: &Path, containers: &[&str], files: Files) -> Result<Self, FreezerError> {
        let interface = if files.exists(&pod.join("freezer.state")) {
            Interface::V1
        } else if files.exists(&pod.join("cgroup.freeze")) {
            Interface::V2
        } else {
            return Err(FreezerError::NoFreezer { folder: pod.to_owned() });
        };
        let mut folders = Vec::new();
        for container in containers {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
            if container.is_empty() || container.starts_with('.') || !container.chars().all(plain) {
                return Err(FreezerError::Name { container: (*container).to_owned() });
            }
            folders.push(pod.join(container));
        }
        Ok(Self { interface, pod: pod.to_owned(), containers: folders, files })
    }

    /// Freezes every container at one instant, and holds each of them by itself.
    ///
    /// # Errors
    /// A container is not there, or the kernel does not freeze it in time: then all of them run again.
    pub fn freeze(&self) -> Result<(), FreezerError> {
        let frozen = self.try_freeze();
        if frozen.is_err() {
            // Half a pod must not stand still. Why it failed says more than what the thaw may say.
            let _ = self.thaw();
        }
        frozen
    }

    fn try_freeze(&self) -> Result<(), FreezerError> {
        for container in &self.containers {
            if !self.files.exists(container) {
                return Err(FreezerError::NoContainer { folder: container.clone() });
            }
        }
        self.set(&self.pod, true)?;
        self.wait(&self.pod, PATIENCE)?;
        for container in &self.containers {
            self.set(container, true)?;
        }
        self.set(&self.pod, false)?;
        for container in &self.containers {
            self.wait(container, PATIENCE)?;
        }
        Ok(())
    }

    /// Freezes every container by itself, one after the other, without the pod.
    ///
    /// # Errors
    /// The kernel does not freeze one of them in time. Those before it stay frozen.
    pub fn hold(&self) -> Result<(), FreezerError> {
        for container in &self.containers {
            self.set(container, true)?;
            self.wait(container, PATIENCE)?;
        }
        Ok(())
    }

    /// Sets every container going at one instant.
    ///
    /// # Errors
    /// The kernel does not let a file be written. Everything that could be thawed is thawed.
    pub fn thaw(&self) -> Result<(), FreezerError> {
        // If the pod cannot be frozen as a whole, its containers start one after the other: better than not at all.
        let mut first_error =
            self.set(&self.pod, true).and_then(|()| self.wait(&self.pod, THAW_PATIENCE)).err();
        for container in &self.containers {
            if self.files.exists(container) {
                first_error = self.set(container, false).err().or(first_error);
            }
        }
        self.set(&self.pod, false)?;
        match self.held()? {
            Held::None => Ok(()),
            Held::Partly | Held::All => {
                Err(first_error.unwrap_or_else(|| FreezerError::StillFrozen { folder: self.pod.clone() }))
            }
        }
    }

    /// What stands still now. A container that is gone does not count.
    ///
    /// # Errors
    /// The state cannot be read.
    pub fn held(&self) -> Result<Held, FreezerError> {
        let pod = self.is_set(&self.pod)?;
        let (mut held, mut running) = (0_usize, 0_usize);
        for container in self.containers.iter().filter(|folder| self.files.exists(folder)) {
            match (self.is_set(container)?, self.is_frozen(container)?) {
                (true, true) => held += 1,
                (false, false) => running += 1,
                // Set and not yet frozen, or frozen by the pod alone.
                _ => return Ok(Held::Partly),
            }
        }
        Ok(match (pod, held, running) {
            (false, 0, _) => Held::None,
            (false, _, 0) => Held::All,
            _ => Held::Partly,
        })
    }

    fn set(&self, folder: &Path, freeze: bool) -> Result<(), FreezerError> {
        let (file, text) = match (self.interface, freeze) {
            (Interface::V1, true) => ("freezer.state", "FROZEN"),
            (Interface::V1, false) => ("freezer.state", "THAWED"),
            (Interface::V2, true) => ("cgroup.freeze", "1"),
            (Interface::V2, false) => ("cgroup.freeze", "0"),
        };
        let path = folder.join(file);
        self.files.write(&path, text).map_err(|source| FreezerError::Write { path, text, source })
    }

    /// Whether the folder is frozen by itself, not only by its parent.
    fn is_set(&self, folder: &Path) -> Result<bool, FreezerError> {
        let file = match self.interface {
            Interface::V1 => "freezer.self_freezing",
            Interface::V2 => "cgroup.freeze",
        };
        Ok(self.read(&folder.join(file))?.trim() == "1")
    }

    /// Whether everything in the folder stands still, by itself or by its parent.
    fn is_frozen(&self, folder: &Path) -> Result<bool, FreezerError> {
        Ok(match self.interface {
            Interface::V1 => self.read(&folder.join("freezer.state"))?.trim() == "FROZEN",
            Interface::V2 => {
                self.read(&folder.join("cgroup.events"))?.lines().any(|line| line.trim() == "frozen 1")
            }
        })
    }

    fn read(&self, path: &Path) -> Result<String, FreezerError> {
        self.files.read(path).map_err(|source| FreezerError::Read { path: path.to_owned(), source })
    }

    fn wait(&self, folder: &Path, patience: u32) -> Result<(), FreezerError> {
        for attempt in 0..patience {
            if self.is_frozen(folder)? {
                return Ok(());
            }
            self.files.pause(attempt);
        }
        Err(FreezerError::NotFrozen { folder: folder.to_owned(), asked: patience })
    }
}
