//! A part on the disk of the receiver.
//!
//! While it is not whole its name begins with a '.', which no [`Name`] does: no part takes the file of another one. All
//! functions block.

use super::frame::Sha256Sum;
use portolan_node::Name;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use tokio::sync::OwnedMutexGuard;

/// How many bytes are read at once to sum them.
const READ_BYTES: usize = 1 << 20;

/// Why a file of a part cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read or written.
    #[error("cannot {what} {path:?} ({}): check the permissions of the folder and the space on its disk", .source.kind())]
    Io {
        /// What was to be done.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is something else than this agent makes.
    #[error("{path:?} is not a private file with one name: remove it, and find out who made it")]
    Foreign {
        /// Which file.
        path: PathBuf,
    },
}

/// A part that arrives, or that has arrived.
pub(super) struct PartFile {
    folder: OwnedFd,
    path: PathBuf,
    name: Name,
    file: File,
    hash: Sha256,
    /// How many bytes are summed: all of them, once the file was read.
    length: u64,
    /// How many bytes it had when it was opened.
    found: u64,
    /// How many bytes are on disk for certain.
    synced: u64,
    whole: bool,
    /// Nobody else writes the part, also while this is used on another thread for a connection that is gone.
    _turn: OwnedMutexGuard<()>,
}

impl PartFile {
    /// Opens the part, or begins with it. What is there is synced; [`PartFile::read_again`] sums it.
    pub(super) fn open(folder: &Path, name: &Name, turn: OwnedMutexGuard<()>) -> Result<Self, FileError> {
        let path = folder.join(name.as_str());
        let fd = open_folder(folder)?;
        let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let open = |name: &str, flags: OFlags, mode: Mode| {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
            rustix::fs::openat2(&fd, name, flags, mode, resolve)
        };
        let (file, whole) = match open(name.as_str(), flags | OFlags::RDONLY, Mode::empty()) {
            Ok(file) => (file, true),
            Err(Errno::NOENT) => {
                let partial = partial(name);
                let new = flags | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
                let file = match open(&partial, new, Mode::RUSR | Mode::WUSR) {
                    Err(Errno::EXIST) => open(&partial, flags | OFlags::RDWR, Mode::empty()),
                    file => file,
                };
                (file.map_err(|error| failed("open", &path, error))?, false)
            }
            Err(error) => return Err(failed("open", &path, error)),
        };
        let file = File::from(file);
        let facts = file.metadata().map_err(|error| failed("look at", &path, error))?;
        if !facts.is_file() || facts.nlink() != 1 || facts.mode() & 0o077 != 0 {
            return Err(FileError::Foreign { path });
        }
        let part = Self {
            folder: fd,
            path,
            name: name.clone(),
            file,
            hash: Sha256::new(),
            length: 0,
            found: facts.len(),
            synced: facts.len(),
            whole,
            _turn: turn,
        };
        // What an agent wrote that was killed may not be on disk, and neither the name of the file.
        part.file.sync_all().map_err(|error| part.failed("sync", error))?;
        part.sync_folder()?;
        Ok(part)
    }

    /// Whether the part has its name already.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// How many bytes there are.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// How many bytes may not be on disk.
    pub(super) fn unsynced(&self) -> u64 {
        self.length.saturating_sub(self.synced)
    }

    /// Whether some of what was found is not summed yet.
    pub(super) fn is_unread(&self) -> bool {
        self.length < self.found
    }

    /// The sum of all bytes.
    pub(super) fn sum(&self) -> Sha256Sum {
        self.hash.clone().finalize().into()
    }

    /// Sums at most so many more of the bytes that were found.
    pub(super) fn read_again(mut self, at_most: u64) -> Result<Self, FileError> {
        let end = self.found.min(self.length.saturating_add(at_most));
        let mut buffer = vec![0; READ_BYTES];
        while self.length < end {
            let most = usize::try_from(end - self.length).unwrap_or(READ_BYTES).min(READ_BYTES);
            let read = self.file.read_at(&mut buffer[..most], self.length);
            let read = read.map_err(|error| self.failed("read", error))?;
            if read == 0 {
                self.found = self.length;
                break;
            }
            self.hash.update(&buffer[..read]);
            self.length += read as u64;
        }
        Ok(self)
    }

    /// Forgets what is there.
    pub(super) fn restart(mut self) -> Result<Self, FileError> {
        self.file.set_len(0).map_err(|error| self.failed("empty", error))?;
        self.hash = Sha256::new();
        (self.length, self.found, self.synced) = (0, 0, 0);
        Ok(self)
    }

    /// Adds bytes.
    pub(super) fn append(mut self, data: &[u8]) -> Result<Self, FileError> {
        self.file.write_all_at(data, self.length).map_err(|error| self.failed("write", error))?;
        self.hash.update(data);
        self.length += data.len() as u64;
        Ok(self)
    }

    /// Brings all bytes to disk.
    pub(super) fn sync(mut self) -> Result<Self, FileError> {
        self.file.sync_data().map_err(|error| self.failed("sync", error))?;
        self.synced = self.length;
        Ok(self)
    }

    /// Gives the part its name, once it is on disk. Returns its path.
    pub(super) fn finish(self) -> Result<PathBuf, FileError> {
        if !self.whole {
            self.file.sync_all().map_err(|error| self.failed("sync", error))?;
            let (from, to) = (partial(&self.name), self.name.as_str());
            rustix::fs::renameat_with(&self.folder, from.as_str(), &self.folder, to, RenameFlags::NOREPLACE)
                .map_err(|error| self.failed("rename", error))?;
            self.sync_folder()?;
        }
        Ok(self.path)
    }

    /// Removes what is not whole.
    pub(super) fn remove(self) -> Result<(), FileError> {
        rustix::fs::unlinkat(&self.folder, partial(&self.name), AtFlags::empty())
            .map_err(|error| self.failed("remove", error))
    }

    fn sync_folder(&self) -> Result<(), FileError> {
        rustix::fs::fsync(&self.folder).map_err(|error| self.failed("sync the folder of", error))
    }

    fn failed(&self, what: &'static str, error: impl Into<io::Error>) -> FileError {
        failed(what, &self.path, error)
    }
}

/// How many bytes a part has on disk, whole or not.
pub(super) fn bytes_on_disk(folder: &Path, name: &Name) -> Result<u64, FileError> {
    let fd = open_folder(folder)?;
    let mut bytes = 0;
    for file in [name.as_str(), partial(name).as_str()] {
        match rustix::fs::statat(&fd, file, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(facts) => bytes += u64::try_from(facts.st_size).unwrap_or(0),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(failed("look at", &folder.join(file), error)),
        }
    }
    Ok(bytes)
}

/// Removes a part, whole or not. One that is not there is fine.
pub(super) fn remove(folder: &Path, name: &Name) -> Result<(), FileError> {
    let fd = open_folder(folder)?;
    for file in [name.as_str(), partial(name).as_str()] {
        match rustix::fs::unlinkat(&fd, file, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(failed("remove", &folder.join(file), error)),
        }
    }
    Ok(())
}

fn partial(name: &Name) -> String {
    format!(".{name}")
}

fn open_folder(folder: &Path) -> Result<OwnedFd, FileError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(folder, flags, Mode::empty()).map_err(|error| failed("open", folder, error))
}

fn failed(what: &'static str, path: &Path, error: impl Into<io::Error>) -> FileError {
    FileError::Io { what, path: path.to_owned(), source: error.into() }
}
