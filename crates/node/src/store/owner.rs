//! Which pod the checkpoints of a migration are for.

use super::{Store, StoreError, Taken, make};
use crate::{Name, replace};
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

/// The file that names the pod.
pub(super) const OWNER: &str = ".pod";

/// No UID of a pod is longer.
const LONGEST: u64 = 253;

impl Store {
    /// Says which pod, by its UID on this node, the checkpoints of a migration are for, and is sure that it is on the disk.
    /// Another pod can carry the annotation of the migration, but not the UID.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn assign(&self, migration: &Name, pod: &Name) -> Result<(), StoreError> {
        make(&self.folder(migration))?;
        let path = self.owner_file(migration);
        replace(&path, pod.as_str().as_bytes()).map_err(|error| StoreError::io("write", &path, error))
    }

    /// The UID of the pod that the checkpoints of a migration are for, if that was said.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn owner(&self, migration: &Name) -> Result<Option<String>, StoreError> {
        let path = self.owner_file(migration);
        let io = |error| StoreError::io("read", &path, error);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(io)?,
        };
        let mut uid = String::new();
        file.take(LONGEST).read_to_string(&mut uid).map_err(io)?;
        Ok(Some(uid))
    }

    /// As [`Store::take`], for a pod with this UID.
    ///
    /// # Errors
    /// The checkpoints are for another pod. If that was said only meanwhile, this one is used up, and whoever said it puts it
    /// back.
    pub fn claim(&self, migration: &Name, container: &Name, pod: &Name) -> Result<Option<Taken>, StoreError> {
        self.check_owner(migration, pod)?;
        let taken = self.take(migration, container)?;
        self.check_owner(migration, pod)?;
        Ok(taken)
    }

    fn check_owner(&self, migration: &Name, pod: &Name) -> Result<(), StoreError> {
        let owner = self.owner(migration)?;
        if owner.as_deref() == Some(pod.as_str()) {
            return Ok(());
        }
        let owner = owner.unwrap_or_else(|| "none".to_owned());
        Err(StoreError::Owner { migration: migration.clone(), owner, pod: pod.clone() })
    }

    fn owner_file(&self, migration: &Name) -> PathBuf {
        self.folder(migration).join(OWNER)
    }
}
