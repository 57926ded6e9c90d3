//! The disk beneath a journal.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What changes the files of a journal.
pub trait Disk: fmt::Debug + Send + Sync + 'static {
    /// Replaces a file as a whole, or makes it, and returns when it is on the disk.
    ///
    /// # Errors
    /// It cannot be written, or it is not certain that it was: then either the old contents or the new ones are there.
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Removes a file, if it is there, and returns when that is on the disk.
    ///
    /// # Errors
    /// It cannot be removed, or it is not certain that it was.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// The disk of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalDisk;

impl Disk for LocalDisk {
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let temporary = temporary(path);
        let written = write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
        if let Err(error) = written {
            // A part of it would only take room on a disk that may be full.
            let _ = fs::remove_file(&temporary);
            return Err(error);
        }
        sync_folder(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => sync_folder(path),
        }
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Where a file is written before it is renamed. A session writes one file at a time.
fn temporary(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".tmp");
    path.with_file_name(name)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
