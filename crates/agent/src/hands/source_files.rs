//! What a source keeps of one session. All functions block.

use super::cgroups::{exists, gone_is_none};
use super::intent::{Intent, Recorded};
use super::process::{Ending, Killable, Started};
use super::{NodeError, Settings, mark};
use crate::session::SessionInfo;
use portolan_node::Name;
use portolan_node::store::Store;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// How long dumps are waited for before their files are removed.
const END_PATIENCE: Duration = Duration::from_secs(5);

const INTENTS: &str = "intents";
const PROCESSES: &str = "processes";

/// The mark of a complete checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Complete {
    /// The session that wrote it.
    pub(super) session: u64,
    /// Its parts.
    pub(super) parts: Vec<String>,
}

/// Dumps that were killed.
pub(super) struct EndingDumps {
    folder: PathBuf,
    known: Result<(), NodeError>,
    ending: Ending<Recorded>,
}

impl EndingDumps {
    /// Waits for at most so long in all. Whether none is left.
    pub(super) fn wait(&mut self, limit: Duration) -> bool {
        self.ending.wait(limit)
    }

    /// Waits until all have ended, and says what could not be ended.
    pub(super) fn finish(self) -> Result<(), NodeError> {
        let ended = self.ending.finish().map_err(NodeError::io("end the dumps of", &self.folder));
        self.known.and(ended)
    }
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

    /// Where it is written down that something is about to write them.
    pub(super) fn intent(&self, container: &Name) -> PathBuf {
        self.folder().join(INTENTS).join(container.as_str())
    }

    /// Where it is written down which process writes them.
    pub(super) fn process(&self, container: &Name) -> PathBuf {
        self.folder().join(PROCESSES).join(container.as_str())
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
        for folder in [INTENTS, PROCESSES, "parts"] {
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

    /// The dumps that were started to write the checkpoint of this migration, whoever started them, and why some are not known, if
    /// that is so.
    fn dumps(&self) -> (Vec<Recorded>, Result<(), NodeError>) {
        let (mut all, mut outcome) = (Vec::new(), Ok(()));
        let mut note = |error| {
            if outcome.is_ok() {
                outcome = Err(error);
            }
        };
        for session in list(&self.all()).unwrap_or_else(|error| {
            note(error);
            Vec::new()
        }) {
            for record in list(&session.join(PROCESSES)).unwrap_or_else(|error| {
                note(error);
                Vec::new()
            }) {
                match mark::read::<Started>(&record) {
                    Ok(started) => all.extend(started.map(Recorded::Started)),
                    Err(error) => note(error),
                }
            }
            for record in list(&session.join(INTENTS)).unwrap_or_else(|error| {
                note(error);
                Vec::new()
            }) {
                let process = session.join(PROCESSES).join(record.file_name().unwrap_or_default());
                // The agent died before it could write the process down.
                let unknown = !matches!(mark::read::<Started>(&process), Ok(Some(_)));
                match mark::read::<Intent>(&record) {
                    Ok(intent) => all.extend(intent.filter(|_| unknown).map(Recorded::Intended)),
                    Err(error) => note(error),
                }
            }
        }
        (all, outcome)
    }

    /// Kills the dumps of this migration that still run, all at once.
    pub(super) fn kill_dumps(&self) -> EndingDumps {
        let (all, known) = self.dumps();
        EndingDumps { folder: self.all(), known, ending: Ending::new(all) }
    }

    /// Whether a dump of this migration still runs, as far as that is known.
    pub(super) fn is_dumping(&self) -> bool {
        self.dumps().0.iter().any(|started| started.is_left(false).unwrap_or(true))
    }

    /// As [`SourceFiles::remove`], once nothing writes there any more, as far as that is known.
    pub(super) fn end(&self) -> Result<(), NodeError> {
        if !self.kill_dumps().wait(END_PATIENCE) {
            return Err(NodeError::io("end the dumps of", &self.all())(io::ErrorKind::TimedOut.into()));
        }
        self.remove()
    }

    /// Removes all that there is of the migration.
    pub(super) fn remove(&self) -> Result<(), NodeError> {
        Ok(self.store.remove(&self.migration)?)
    }
}

/// Removes what there is of migrations that are not kept, and ends what still writes it.
pub(super) fn remove_ended(settings: &Settings, kept: &BTreeSet<String>) -> Result<(), NodeError> {
    let store = Store::new(settings.work.join("source"));
    let mut outcome = Ok(());
    for migration in store.migrations()?.into_iter().filter(|migration| !kept.contains(migration.as_str())) {
        let files = SourceFiles { store: store.clone(), migration, session: 0 };
        // One that cannot be removed does not keep the others.
        outcome = outcome.and(files.end());
    }
    outcome
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
        let written = path.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."));
        paths.extend(written.then_some(path));
    }
    Ok(paths)
}
