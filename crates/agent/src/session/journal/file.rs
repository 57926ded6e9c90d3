//! What stands in a file of the journal.

use crate::session::{JournalError, Pod, Role};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The version of the files.
const VERSION: u64 = 1;

/// The largest file, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// A session as it stands in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::session) struct Entry<R> {
    pub(in crate::session) pod: Pod,
    /// What there was of the pod when the session began.
    pub(in crate::session) baseline: String,
    pub(in crate::session) record: R,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a, R> {
    version: u64,
    role: Role,
    pod: &'a Pod,
    baseline: &'a str,
    record: &'a R,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Found<R> {
    #[serde(rename = "version")]
    _version: u64,
    role: Role,
    pod: Pod,
    baseline: String,
    record: R,
}

#[derive(Deserialize)]
struct Header {
    version: u64,
}

/// The greatest number of a session.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Counter {
    version: u64,
    greatest: u64,
}

impl Counter {
    pub(super) fn of(greatest: u64) -> Self {
        Self { version: VERSION, greatest }
    }

    /// The number in the file; 0 if there is none.
    pub(super) fn read(path: &Path) -> Result<u64, JournalError> {
        let Some(bytes) = read(path)? else { return Ok(0) };
        check_version(path, &bytes)?;
        let counter: Self = serde_json::from_slice(&bytes).map_err(|error| corrupt(path, error))?;
        Ok(counter.greatest)
    }

    pub(super) fn encode(&self, path: &Path) -> Result<Vec<u8>, JournalError> {
        serde_json::to_vec(self).map_err(|error| corrupt(path, error))
    }
}

/// The name of the file of a session.
pub(super) fn name(role: Role, pod: &Pod) -> String {
    format!("{role}.{}.json", pod.uid())
}

/// The role of the session in the file of this name, if it can be one of a session.
pub(super) fn role(name: &str) -> Option<Role> {
    if !name.ends_with(".json") {
        return None;
    }
    [Role::Source, Role::Destination].into_iter().find(|role| {
        name.strip_prefix(role.as_str())
            .is_some_and(|rest| rest.starts_with('.') && rest.len() > ".json".len())
    })
}

/// Reads a file, unless it is larger than a session may be. Nothing if there is none.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, JournalError> {
    let io = |error| JournalError::io("read", path, error);
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(error)),
        Ok(metadata) if !metadata.is_file() => return Err(JournalError::Foreign { path: path.to_owned() }),
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path).map_err(io)?.take(limit).read_to_end(&mut bytes).map_err(io)?;
    check_size(path, &bytes)?;
    Ok(Some(bytes))
}

pub(super) fn encode<R: Serialize>(
    path: &Path,
    role: Role,
    entry: &Entry<R>,
) -> Result<Vec<u8>, JournalError> {
    let Entry { pod, baseline, record } = entry;
    let written = Written { version: VERSION, role, pod, baseline, record };
    let bytes = serde_json::to_vec(&written).map_err(|error| corrupt(path, error))?;
    check_size(path, &bytes)?;
    Ok(bytes)
}

pub(super) fn decode<R: DeserializeOwned>(
    path: &Path,
    role: Role,
    bytes: &[u8],
) -> Result<Entry<R>, JournalError> {
    check_version(path, bytes)?;
    let found: Found<R> = serde_json::from_slice(bytes).map_err(|error| corrupt(path, error))?;
    let Found { pod, baseline, record, .. } = found;
    let pod = Pod::new(pod.namespace(), pod.name(), pod.uid()).map_err(|error| corrupt(path, error))?;
    let named = path.file_name().and_then(|name| name.to_str());
    if found.role != role || named != Some(name(role, &pod).as_str()) {
        let why = format!("it is about pod {pod} with UID {} at the {}", pod.uid(), found.role);
        return Err(JournalError::Corrupt { path: path.to_owned(), why });
    }
    Ok(Entry { pod, baseline, record })
}

fn check_version(path: &Path, bytes: &[u8]) -> Result<(), JournalError> {
    let Header { version } = serde_json::from_slice(bytes).map_err(|error| corrupt(path, error))?;
    if version == VERSION {
        return Ok(());
    }
    Err(JournalError::Version { path: path.to_owned(), version, supported: VERSION })
}

fn check_size(path: &Path, bytes: &[u8]) -> Result<(), JournalError> {
    if bytes.len() <= MAX_BYTES {
        return Ok(());
    }
    Err(JournalError::TooLarge { path: path.to_owned(), bytes: bytes.len(), limit: MAX_BYTES })
}

fn corrupt(path: &Path, why: impl ToString) -> JournalError {
    JournalError::Corrupt { path: path.to_owned(), why: why.to_string() }
}
