//! The journal of an agent: a folder with one file for each session, which says how far it is.
//!
//! ```text
//! FOLDER/source.UID.json        the session at the source of the pod with this UID
//! FOLDER/destination.UID.json   the session at the destination
//! FOLDER/sessions.json          the greatest number of a session so far
//! FOLDER/.NAME.tmp              what is being written; removed at the next start
//! ```
//!
//! A file is replaced as a whole and is on the disk before the write ends. A file that cannot be read is reported and left
//! as it is; the others are read all the same.

mod disk;
mod file;

pub use disk::{Disk, LocalDisk};
pub(super) use file::Entry;

use super::{JournalError, Pod, Role};
use crate::lane::Lane;
use file::{Counter, decode, encode, read};
use portolan_core::migration::destination::DestinationRecord;
use portolan_core::migration::source::SourceRecord;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// How many files are read.
const MAX_FILES: usize = 1024;

const COUNTER: &str = "sessions.json";

/// How many files are read or written at once.
const MOST_AT_ONCE: usize = 32;

/// How long that may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The journal of an agent. Its copies are the same journal.
#[derive(Clone, Debug)]
pub struct Journal {
    folder: PathBuf,
    disk: Arc<dyn Disk>,
    lane: Lane,
    /// The greatest number of a session, once it is read.
    drawn: Arc<Mutex<Option<u64>>>,
}

/// What a journal holds.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) sources: Vec<Entry<SourceRecord>>,
    pub(super) destinations: Vec<Entry<DestinationRecord>>,
    /// Files that are not understood.
    pub(super) broken: Vec<JournalError>,
}

impl Journal {
    /// The journal in this folder, which need not be there yet.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self::with_disk(folder, Arc::new(LocalDisk))
    }

    /// The same with another disk beneath.
    #[must_use]
    pub fn with_disk(folder: impl Into<PathBuf>, disk: Arc<dyn Disk>) -> Self {
        let lane = Lane::new("access to the file", MOST_AT_ONCE, PATIENCE);
        Self { folder: folder.into(), disk, lane, drawn: Arc::default() }
    }

    /// The same with a disk that may take so long for one file.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { lane: self.lane.with_patience(patience), ..self }
    }

    /// Reads all sessions.
    pub(super) async fn load(&self) -> Result<Loaded, JournalError> {
        let folder = self.folder.clone();
        self.blocking("read", &self.folder, move || load(&folder)).await
    }

    /// Reads the session of a pod, if there is one.
    pub(super) async fn get<R: DeserializeOwned + Send + 'static>(
        &self,
        role: Role,
        pod: &Pod,
    ) -> Result<Option<Entry<R>>, JournalError> {
        let path = self.path(role, pod);
        let read_path = path.clone();
        let entry = self.blocking("read", &path, move || {
            read(&read_path)?.map(|bytes| decode(&read_path, role, &bytes)).transpose()
        });
        match entry.await? {
            Some(Entry { pod: other, .. }) if other != *pod => {
                Err(JournalError::Corrupt { path, why: format!("it is about pod {other}, not {pod}") })
            }
            entry => Ok(entry),
        }
    }

    /// Writes a session, and is sure that it is on the disk.
    pub(super) async fn put<R: Serialize>(&self, role: Role, entry: Entry<R>) -> Result<(), JournalError> {
        let path = self.path(role, &entry.pod);
        let bytes = encode(&path, role, &entry)?;
        self.replace(path, bytes).await
    }

    /// Removes a session, and is sure that it is gone.
    pub(super) async fn remove(&self, role: Role, pod: &Pod) -> Result<(), JournalError> {
        let (path, disk) = (self.path(role, pod), Arc::clone(&self.disk));
        let target = path.clone();
        self.blocking("remove", &path, move || {
            disk.remove(&target).map_err(|error| JournalError::io("remove", &target, error))
        })
        .await
    }

    /// A number of a session that was never drawn before, and is at least this one.
    pub(super) async fn draw(&self, at_least: u64) -> Result<u64, JournalError> {
        let path = self.folder.join(COUNTER);
        let mut drawn = self.drawn.lock().await;
        let last = match *drawn {
            Some(last) => last,
            None => {
                let target = path.clone();
                self.blocking("read", &path, move || Counter::read(&target)).await?
            }
        };
        let next = last.saturating_add(1).max(at_least);
        let bytes = Counter::of(next).encode(&path)?;
        self.replace(path, bytes).await?;
        *drawn = Some(next);
        Ok(next)
    }

    async fn replace(&self, path: PathBuf, bytes: Vec<u8>) -> Result<(), JournalError> {
        let (target, disk) = (path.clone(), Arc::clone(&self.disk));
        self.blocking("write", &path, move || {
            disk.replace(&target, &bytes).map_err(|error| JournalError::io("write", &target, error))
        })
        .await
    }

    fn path(&self, role: Role, pod: &Pod) -> PathBuf {
        self.folder.join(file::name(role, pod))
    }

    /// Does something that waits for the disk where no task waits with it. A write that hangs may come to the disk later, but never
    /// after the next one of the same file, which does not begin before.
    async fn blocking<T: Send + 'static>(
        &self,
        what: &'static str,
        path: &Path,
        work: impl FnOnce() -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        match self.lane.run(&path.to_string_lossy(), work).await {
            Ok(result) => result,
            Err(source) => Err(JournalError::Hangs { what, path: path.to_owned(), source }),
        }
    }
}

fn load(folder: &Path) -> Result<Loaded, JournalError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| JournalError::io("make", folder, error))?;
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| JournalError::io("list", folder, error))? {
        paths.push(entry.map_err(|error| JournalError::io("list", folder, error))?.path());
    }
    paths.sort();
    let mut loaded = Loaded::default();
    if paths.len() > MAX_FILES {
        let (folder, count) = (folder.to_owned(), paths.len());
        loaded.broken.push(JournalError::TooMany { folder, count, limit: MAX_FILES });
    }
    for path in paths.iter().take(MAX_FILES) {
        if let Err(error) = load_file(path, &mut loaded) {
            loaded.broken.push(error);
        }
    }
    Ok(loaded)
}

fn load_file(path: &Path, loaded: &mut Loaded) -> Result<(), JournalError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if name == COUNTER {
        return Ok(());
    }
    if name.starts_with('.') && name.ends_with(".tmp") {
        // A write that did not end: what it was to replace is still there.
        return fs::remove_file(path).map_err(|error| JournalError::io("remove", path, error));
    }
    let Some(role) = file::role(name) else { return Err(JournalError::Foreign { path: path.to_owned() }) };
    let Some(bytes) = read(path)? else { return Ok(()) };
    match role {
        Role::Source => loaded.sources.push(decode(path, role, &bytes)?),
        Role::Destination => loaded.destinations.push(decode(path, role, &bytes)?),
    }
    Ok(())
}
