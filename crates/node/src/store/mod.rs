//! The folder of a node in which checkpoints lie until they are used.
//!
//! ```text
//! ROOT/MIGRATION/CONTAINER/checkpoint/       the images of CRIU; renamed to `used` when a restore takes them
//! ROOT/MIGRATION/CONTAINER/rootfs-diff.tar   what the container changed in its root file system
//! ROOT/MIGRATION/CONTAINER/paths.json        the paths that the images refer to
//! ROOT/MIGRATION/.frozen, .live, .cancel     marks
//! ROOT/MIGRATION/.alive                      counts as long as somebody works on it
//! ROOT/MIGRATION/.pod                        the UID of the pod that the checkpoints are for
//! ROOT/MIGRATION/.incoming/CONTAINER/        what is still arriving
//! ```
//!
//! No container's name begins with a dot, so none is taken for a mark.
//!
//! A checkpoint is complete or not there: it arrives under another name and is renamed. A restore takes it by a rename, so it is
//! used once: a container that dies later must not go back in time.

mod beat;
mod error;
mod mark;
mod owner;
mod paths;
#[cfg(test)]
mod tests;

pub use crate::tree::RemoveError;
pub use error::StoreError;
pub use mark::Mark;
pub use paths::Paths;

use crate::{Name, tree};
use nix::errno::Errno;
use nix::sys::statvfs::statvfs;
use owner::OWNER;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Where checkpoints lie if nothing else is said.
pub const DEFAULT_ROOT: &str = "/var/lib/portolan/restore";

const CHECKPOINT: &str = "checkpoint";
const USED: &str = "used";
const ROOTFS_DIFF: &str = "rootfs-diff.tar";
const INCOMING: &str = ".incoming";

/// The store of a node.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

/// What the store holds of one container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Nothing yet.
    None,
    /// A checkpoint that waits to be used.
    Ready,
    /// A checkpoint that was used.
    Used,
}

/// A checkpoint that was taken for a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The folder of the container: CRIU's working folder.
    pub work: PathBuf,
    /// The images of CRIU.
    pub images: PathBuf,
    /// What is laid over the root file system before the restore.
    pub rootfs_diff: Option<PathBuf>,
}

impl Store {
    /// The store in this folder, which need not be there yet.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder of a migration.
    #[must_use]
    pub fn folder(&self, migration: &Name) -> PathBuf {
        self.root.join(migration.as_str())
    }

    /// Whether so many bytes fit, if so many are to stay free on the disk.
    ///
    /// # Errors
    /// They do not, or the disk cannot be asked.
    pub fn check_room(&self, bytes: u64, stays_free: u64) -> Result<(), StoreError> {
        make(&self.root)?;
        let disk = statvfs(&self.root)
            .map_err(|errno| StoreError::io("look at the disk of", &self.root, errno.into()))?;
        let free = disk.blocks_available().saturating_mul(disk.fragment_size());
        if free < bytes.saturating_add(stays_free) {
            return Err(StoreError::NoRoom { root: self.root.clone(), bytes, free, stays_free });
        }
        Ok(())
    }

    /// An empty folder in which the parts of a container's checkpoint are put together. Parts of an earlier try are gone.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn begin(&self, migration: &Name, container: &Name) -> Result<Incoming, StoreError> {
        let folder = self.folder(migration).join(INCOMING).join(container.as_str());
        tree::remove(&folder)?;
        make(&folder)?;
        make(&folder.join(CHECKPOINT))?;
        Ok(Incoming { folder, target: self.folder(migration).join(container.as_str()) })
    }

    /// What there is of a container.
    #[must_use]
    pub fn presence(&self, migration: &Name, container: &Name) -> Presence {
        let folder = self.folder(migration).join(container.as_str());
        // A checkpoint that was used is used, whatever else lies there.
        if folder.join(USED).exists() {
            Presence::Used
        } else if folder.join(CHECKPOINT).exists() {
            Presence::Ready
        } else {
            Presence::None
        }
    }

    /// Takes the checkpoint of a container, if it is there and was never taken: of all that try, one gets it.
    ///
    /// # Errors
    /// The store cannot be changed.
    pub fn take(&self, migration: &Name, container: &Name) -> Result<Option<Taken>, StoreError> {
        if self.has(migration, Mark::Live) {
            return Ok(None);
        }
        let work = self.folder(migration).join(container.as_str());
        let (images, used) = (work.join(CHECKPOINT), work.join(USED));
        if used.exists() {
            return Ok(None);
        }
        match fs::rename(&images, &used) {
            Ok(()) => sync(&work)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io("take", &images, error)),
        }
        let rootfs_diff = Some(work.join(ROOTFS_DIFF)).filter(|path| path.exists());
        Ok(Some(Taken { work, images: used, rootfs_diff }))
    }

    /// Lets a checkpoint be taken again, because what was restored from it died before it ran.
    ///
    /// # Errors
    /// The pod is live: the container may have run, and must not go back in time.
    pub fn put_back(&self, migration: &Name, container: &Name) -> Result<(), StoreError> {
        if self.has(migration, Mark::Live) {
            return Err(StoreError::Live { migration: migration.clone() });
        }
        let work = self.folder(migration).join(container.as_str());
        let used = work.join(USED);
        match fs::rename(&used, work.join(CHECKPOINT)) {
            Ok(()) => sync(&work),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(StoreError::io("put back", &used, error)),
        }
    }

    /// Removes all that the store holds of a migration, what is still arriving included.
    ///
    /// # Errors
    /// Something is mounted in it, or it cannot be removed.
    pub fn remove(&self, migration: &Name) -> Result<(), StoreError> {
        Ok(tree::remove(&self.folder(migration))?)
    }

    /// Removes what the store holds of a migration, except for what says that its pod is live, and which pod that is.
    ///
    /// # Errors
    /// Something is mounted in it, or it cannot be removed.
    pub fn remove_checkpoints(&self, migration: &Name) -> Result<(), StoreError> {
        let folder = self.folder(migration);
        let Some(fd) = open(&folder)? else { return Ok(()) };
        for name in listed(&fd, &folder)? {
            tree::remove_at(&fd, &name, &folder.join(&name))?;
        }
        Ok(())
    }

    /// Whether the store holds anything of a migration, except for what says that its pod is live, and which pod that is.
    ///
    /// # Errors
    /// It cannot be listed.
    pub fn has_checkpoints(&self, migration: &Name) -> Result<bool, StoreError> {
        let folder = self.folder(migration);
        match open(&folder)? {
            Some(fd) => Ok(!listed(&fd, &folder)?.is_empty()),
            None => Ok(false),
        }
    }

    /// The migrations that the store holds anything of.
    ///
    /// # Errors
    /// It cannot be listed.
    pub fn migrations(&self) -> Result<Vec<Name>, StoreError> {
        let entries = match fs::read_dir(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| StoreError::io("list", &self.root, error))?,
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut migrations: Vec<Name> = names.filter_map(|name| Name::new("migration", &name).ok()).collect();
        migrations.sort();
        Ok(migrations)
    }
}

/// A checkpoint that is being put together.
#[derive(Debug)]
pub struct Incoming {
    folder: PathBuf,
    target: PathBuf,
}

impl Incoming {
    /// Where the images of CRIU are put.
    #[must_use]
    pub fn images(&self) -> PathBuf {
        self.folder.join(CHECKPOINT)
    }

    /// Where the changes of the root file system are put.
    #[must_use]
    pub fn rootfs_diff(&self) -> PathBuf {
        self.folder.join(ROOTFS_DIFF)
    }

    /// Makes the checkpoint appear, all of it at once.
    ///
    /// # Errors
    /// There is one already, or the store cannot be changed.
    pub fn finish(self) -> Result<(), StoreError> {
        if self.target.exists() {
            return Err(StoreError::Exists { path: self.target });
        }
        if let Some(parent) = self.target.parent() {
            make(parent)?;
        }
        sync_all(&self.folder)?;
        fs::rename(&self.folder, &self.target)
            .map_err(|error| StoreError::io("rename", &self.target, error))?;
        self.target.parent().map_or(Ok(()), sync)
    }
}

/// Makes a folder that only root can look into: memory of strangers lies in it.
fn make(folder: &Path) -> Result<(), StoreError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| StoreError::io("make", folder, error))
}

/// Opens the folder of a migration, if it is there.
fn open(folder: &Path) -> Result<Option<OwnedFd>, StoreError> {
    match tree::open_path(folder) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(StoreError::io("open", folder, errno.into())),
    }
}

/// What is in the folder of a migration, except for what says that its pod is live, and which pod that is.
fn listed(fd: &OwnedFd, folder: &Path) -> Result<Vec<OsString>, StoreError> {
    let mut names = tree::names(fd).map_err(|error| StoreError::io("list", folder, error))?;
    names.retain(|name| name != Mark::Live.file() && name != OWNER);
    Ok(names)
}

fn sync(path: &Path) -> Result<(), StoreError> {
    let synced = fs::File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|error| StoreError::io("write to the disk", path, error))
}

/// Brings the parts of a checkpoint to the disk: a checkpoint that appears must survive what comes next.
fn sync_all(folder: &Path) -> Result<(), StoreError> {
    for inner in [folder.join(CHECKPOINT), folder.to_owned()] {
        let entries = fs::read_dir(&inner).map_err(|error| StoreError::io("list", &inner, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| StoreError::io("list", &inner, error))?;
            if entry.file_type().is_ok_and(|kind| kind.is_file()) {
                sync(&entry.path())?;
            }
        }
        sync(&inner)?;
    }
    Ok(())
}
