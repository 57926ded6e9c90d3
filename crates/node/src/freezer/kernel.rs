//! The files of the kernel.

use std::path::Path;
use std::time::Duration;
use std::{fs, io, thread};

/// What a freezer needs of a folder of cgroups.
pub trait CgroupFiles {
    /// Whether a file or folder is there.
    fn exists(&self, path: &Path) -> bool;

    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self, path: &Path) -> io::Result<String>;

    /// Writes to a file that is there.
    ///
    /// # Errors
    /// It cannot be written.
    fn write(&self, path: &Path, text: &str) -> io::Result<()>;

    /// Waits a moment before the kernel is asked again.
    fn pause(&self, attempt: u32);
}

/// The kernel of this node.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kernel;

impl CgroupFiles for Kernel {
    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        fs::read_to_string(path)
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        // Never created: a cgroup that is gone must be an error.
        io::Write::write_all(&mut fs::OpenOptions::new().write(true).open(path)?, text.as_bytes())
    }

    fn pause(&self, attempt: u32) {
        // Freezing mostly takes well under a millisecond, and every one of them is downtime.
        let microseconds = if attempt < 50 { 100 } else { 1_000 };
        thread::sleep(Duration::from_micros(microseconds));
    }
}
