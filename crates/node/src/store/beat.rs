//! That somebody still works on a migration.

use super::{Store, StoreError, make};
use crate::Name;
use std::fs;
use std::path::PathBuf;

/// The file that counts.
const BEAT: &str = ".alive";

impl Store {
    /// Says once more that the migration is worked on: whoever waits for its checkpoint goes on waiting.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn beat(&self, migration: &Name) -> Result<(), StoreError> {
        make(&self.folder(migration))?;
        let path = self.beat_file(migration);
        // It says nothing after a reboot, so it need not be on the disk.
        let next = self.beats(migration).unwrap_or_default().wrapping_add(1);
        fs::write(&path, next.to_string()).map_err(|error| StoreError::io("write", &path, error))
    }

    /// How often that was said, if it ever was.
    #[must_use]
    pub fn beats(&self, migration: &Name) -> Option<u64> {
        // In the middle of a write there is nothing to read; the next look sees it.
        fs::read_to_string(self.beat_file(migration)).ok().map(|text| text.trim().parse().unwrap_or_default())
    }

    fn beat_file(&self, migration: &Name) -> PathBuf {
        self.folder(migration).join(BEAT)
    }
}
