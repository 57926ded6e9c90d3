//! Marks of a migration: files whose presence says something.

use super::{Store, StoreError, make, sync};
use crate::Name;
use std::fs;
use std::io;
use std::path::PathBuf;

/// A mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// What is restored stays frozen.
    Frozen,
    /// The migration is committed: the pod is the pod from now on, and its containers may be started afresh.
    Live,
    /// The migration is given up: nobody waits for its checkpoint any more.
    Cancel,
}

impl Mark {
    pub(super) fn file(self) -> &'static str {
        match self {
            Self::Frozen => ".frozen",
            Self::Live => ".live",
            Self::Cancel => ".cancel",
        }
    }
}

impl Store {
    /// Sets a mark, and is sure that it is on the disk.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn mark(&self, migration: &Name, mark: Mark) -> Result<(), StoreError> {
        let path = self.path(migration, mark);
        make(&self.folder(migration))?;
        fs::write(&path, "").map_err(|error| StoreError::io("make", &path, error))?;
        sync(&path)?;
        sync(&self.folder(migration))
    }

    /// Takes a mark away.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn unmark(&self, migration: &Name, mark: Mark) -> Result<(), StoreError> {
        let path = self.path(migration, mark);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::io("remove", &path, error))
            }
            _ => Ok(()),
        }
    }

    /// Whether a mark is set.
    #[must_use]
    pub fn has(&self, migration: &Name, mark: Mark) -> bool {
        self.path(migration, mark).exists()
    }

    fn path(&self, migration: &Name, mark: Mark) -> PathBuf {
        self.folder(migration).join(mark.file())
    }
}
