//! The disk beneath a journal.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::Path;

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
        portolan_node::replace(path, bytes)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all()),
        }
    }
}
