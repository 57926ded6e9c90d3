//! The entries of a stream of a stranger, one after the other and within limits.

use super::entry::LONGEST_PATH;
use super::{ArchiveError, Limits, Refusal};
use std::borrow::Cow;
use std::io::Read;
use tar::{Archive, EntryType, Header};

/// An entry.
pub(super) struct Entry<'a> {
    pub(super) kind: EntryType,
    pub(super) header: &'a Header,
    pub(super) path: &'a [u8],
    /// What it is a link to.
    pub(super) target: Option<&'a [u8]>,
}

/// How much a stream holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

/// Why an entry is not taken.
pub(super) enum Failure {
    Refused(Refusal),
    Other(ArchiveError),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Gives each entry with its data.
pub(super) fn walk(
    stream: &mut impl Read,
    limits: &Limits,
    mut each: impl FnMut(&Entry<'_>, &mut dyn Read) -> Result<(), Failure>,
) -> Result<Counted, ArchiveError> {
    let mut counted = Counted::default();
    let mut archive = Archive::new(stream);
    // Raw: the extensions are read here, where their length is bounded.
    let entries = archive.entries().map_err(ArchiveError::Stream)?.raw(true);
    let (mut long_path, mut long_target) = (None, None);
    for entry in entries {
        let mut entry = entry.map_err(ArchiveError::Stream)?;
        let kind = entry.header().entry_type();
        match kind {
            EntryType::GNULongName => {
                long_path = Some(long(&mut entry)?);
                continue;
            }
            EntryType::GNULongLink => {
                long_target = Some(long(&mut entry)?);
                continue;
            }
            _ => {}
        }
        let header = entry.header().clone();
        let path = long_path.take().unwrap_or_else(|| header.path_bytes().into_owned());
        let target = long_target.take().or_else(|| header.link_name_bytes().map(Cow::into_owned));
        let refused = |refusal| ArchiveError::refused(&path, refusal);
        counted.entries += 1;
        if counted.entries > limits.entries {
            return Err(refused(Refusal::TooManyEntries(limits.entries)));
        }
        let size = header.entry_size().map_err(|error| refused(Refusal::Header(error.to_string())))?;
        if size > limits.entry_bytes {
            return Err(refused(Refusal::EntryTooLarge { bytes: size, limit: limits.entry_bytes }));
        }
        counted.bytes = counted.bytes.saturating_add(size);
        if counted.bytes > limits.total_bytes {
            let (bytes, limit) = (counted.bytes, limits.total_bytes);
            return Err(refused(Refusal::TooManyBytes { bytes, limit }));
        }
        let found = Entry { kind, header: &header, path: &path, target: target.as_deref() };
        match each(&found, &mut entry) {
            Ok(()) => {}
            Err(Failure::Refused(refusal)) => return Err(refused(refusal)),
            Err(Failure::Other(error)) => return Err(error),
        }
    }
    Ok(counted)
}

/// A path that does not fit into a header.
fn long(entry: &mut impl Read) -> Result<Vec<u8>, ArchiveError> {
    let mut path = Vec::new();
    let most = LONGEST_PATH as u64 + 2;
    entry.take(most).read_to_end(&mut path).map_err(ArchiveError::Stream)?;
    if path.last() == Some(&0) {
        path.pop();
    }
    if path.len() > LONGEST_PATH {
        return Err(ArchiveError::refused(&path, Refusal::PathTooLong(LONGEST_PATH)));
    }
    Ok(path)
}
