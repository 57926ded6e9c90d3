//! An archive that is written once.

use crate::failure::Failure;
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tar::{Builder, Header};

/// The folder that everything in it is in.
const FOLDER: &str = "portolan-bug-report";

/// A new .tar.gz that only its owner can read.
pub(super) struct Archive {
    path: PathBuf,
    tar: Builder<GzEncoder<File>>,
    time: u64,
    done: bool,
}

impl Archive {
    /// Creates the file, which must not exist.
    pub(super) fn create(path: &Path, now: Timestamp) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(|error| {
            let failure = Failure::input(format!("--output: cannot write {}: {error}", path.display()));
            match error.kind() {
                ErrorKind::AlreadyExists => failure.hint("give a file that does not exist"),
                _ => failure,
            }
        })?;
        let tar = Builder::new(GzEncoder::new(file, Compression::default()));
        let time = u64::try_from(now.as_second()).unwrap_or_default();
        Ok(Self { path: path.to_owned(), tar, time, done: false })
    }

    /// Adds a file.
    pub(super) fn add(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        let mut header = Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(self.time);
        Ok(self.tar.append_data(&mut header, format!("{FOLDER}/{name}"), text.as_bytes())?)
    }

    /// Writes what is left.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.tar.finish()?;
        self.tar.get_mut().try_finish()?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Archive {
    /// Half an archive is none.
    fn drop(&mut self) {
        if !self.done {
            // Nothing helps if that fails too, and the failure before it is told.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
