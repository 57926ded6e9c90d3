//! What a source keeps of one session. All functions block.

use super::cgroups::{exists, gone_is_none};
use super::process::Started;
use super::{NodeError, Settings, mark};
use crate::session::SessionInfo;
use portolan_node::Name;
use portolan_node::store::Store;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::PathBuf;

/// The mark of a complete checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Complete {
    /// The session that wrote it.
    pub(super) session: u64,
    /// Its parts.
    pub(super) parts: Vec<String>,
}

/// The files of one session at the source.
#[derive(Clone)]
pub(super) struct SourceFiles {
    /// It removes folders without being led out of them.
    store: Store,
    migration: Name,
    session: u64,
}

impl SourceFiles {
    pub(super) fn new(settings: &Settings, info: &SessionInfo) -> Result<Self, NodeError> {
        let migration = Name::new("migration", &info.migration)?;
        Ok(Self { store: Store::new(settings.work.join("source")), migration, session: info.session })
    }

    fn all(&self) -> PathBuf {
        self.store.folder(&self.migration)
    }

    fn folder(&self) -> PathBuf {
        self.all().join(self.session.to_string())
    }

    /// CRIU's working folder of a container.
    pub(super) fn dump(&self, container: &Name) -> PathBuf {
        self.folder().join("dumps").join(container.as_str())
    }

    /// The images of CRIU of a container.
    pub(super) fn images(&self, container: &Name) -> PathBuf {
        self.dump(container).join("checkpoint")
    }

    /// Where it is written down which process writes them.
    pub(super) fn process(&self, container: &Name) -> PathBuf {
        self.folder().join("processes").join(container.as_str())
    }

    /// A part.
    pub(super) fn part(&self, part: &Name) -> PathBuf {
        self.folder().join("parts").join(part.as_str())
    }

    fn mark(&self) -> PathBuf {
        self.folder().join("complete")
    }

    /// Removes what is left of an earlier try, its mark first, and makes the folders for another one.
    pub(super) fn begin(&self, containers: &[Name]) -> Result<(), NodeError> {
        let mark = self.mark();
        gone_is_none(fs::remove_file(&mark)).map_err(NodeError::io("remove", &mark))?;
        self.remove()?;
        for container in containers {
            mark::folder(&self.images(container))?;
        }
        for folder in ["processes", "parts"] {
            mark::folder(&self.folder().join(folder))?;
        }
        Ok(())
    }

    /// Whether a checkpoint of this session was begun: then its freeze is over.
    pub(super) fn has_begun(&self) -> Result<bool, NodeError> {
        exists(&self.folder())
    }

    /// Says that all parts are there and on the disk. The last thing that is written.
    pub(super) fn finish(&self, parts: &[Name]) -> Result<(), NodeError> {
        mark::sync(&self.folder().join("parts"))?;
        let parts = parts.iter().map(|part| part.as_str().to_owned()).collect();
        let path = self.mark();
        let complete = Complete { session: self.session, parts };
        mark::write(&path, &complete).map_err(NodeError::io("write", &path))
    }

    /// The complete checkpoint of this session, if there is one.
    pub(super) fn complete(&self) -> Result<Option<Complete>, NodeError> {
        Ok(mark::read::<Complete>(&self.mark())?.filter(|complete| complete.session == self.session))
    }

    /// Whether there is anything of the migration.
    pub(super) fn has_any(&self) -> Result<bool, NodeError> {
        exists(&self.all())
    }

    /// Ends the dumps of this migration that still run, whoever started them: all that can be ended, then says what cannot.
    pub(super) fn end_dumps(&self) -> Result<(), NodeError> {
        let mut outcome = Ok(());
        for session in list(&self.all())? {
            for record in list(&session.join("processes"))? {
                let ended = match mark::read::<Started>(&record) {
                    Ok(Some(started)) => started.end().map_err(NodeError::io("end the process of", &record)),
                    Ok(None) => Ok(()),
                    Err(error) => Err(error),
                };
                outcome = outcome.and(ended);
            }
        }
        outcome
    }

    /// Removes all that there is of the migration.
    pub(super) fn remove(&self) -> Result<(), NodeError> {
        Ok(self.store.remove(&self.migration)?)
    }
}

/// What is in a folder, but for files that are still being written.
fn list(folder: &std::path::Path) -> Result<Vec<PathBuf>, NodeError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        entries => entries.map_err(NodeError::io("list", folder))?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(NodeError::io("list", folder))?.path();
        if path.extension().is_none_or(|end| end != "new") {
            paths.push(path);
        }
    }
    Ok(paths)
}
