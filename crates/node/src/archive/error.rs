//! Why a stream cannot be packed or unpacked.

use crate::tree::RemoveError;
use std::io;
use std::path::{Path, PathBuf};

/// Why a stream cannot be packed or unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// An entry is refused.
    #[error("entry {entry:?} is refused: {refusal}")]
    Refused {
        /// The path of the entry, as far as it can be shown.
        entry: String,
        /// Why.
        refusal: Refusal,
    },
    /// The stream is longer than it may be.
    #[error("the stream is longer than the {limit} bytes that it may have")]
    TooLong {
        /// The limit.
        limit: u64,
    },
    /// It is not what was sent.
    #[error("the stream has the SHA-256 sum {found}, and {expected} was announced: send it again")]
    Sum {
        /// What was announced.
        expected: String,
        /// What it is.
        found: String,
    },
    /// The stream cannot be read or written.
    #[error("the stream cannot be read or written: {0}")]
    Stream(io::Error),
    /// A file or folder cannot be read or written.
    #[error("cannot {what} {path:?}: {source}")]
    Io {
        /// What was to be done.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something that was deleted in the container cannot be removed.
    #[error(transparent)]
    Remove(#[from] RemoveError),
}

/// Why an entry is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It begins at the root.
    #[error("its path is absolute")]
    Absolute,
    /// It leads up.
    #[error("its path has a part '..'")]
    ParentFolder,
    /// It has no name, or one with a zero byte.
    #[error("its path is no path")]
    NoPath,
    /// Its name is too long.
    #[error("its path has more than {0} bytes")]
    PathTooLong(usize),
    /// It lies too deep.
    #[error("it lies more than {0} folders deep")]
    TooDeep(usize),
    /// The folder of the entry is missing, a link, or a mount.
    #[error("the folder that it lies in is missing, is a link, or is a mount")]
    Folder,
    /// Its link leads out.
    #[error("it is a link to {0:?}, which is outside of the folder")]
    LinkOutside(String),
    /// It is a device.
    #[error("it is a device")]
    Device,
    /// It is a device that the container does not have.
    #[error(
        "it is the device {major}:{minor}, which the pod spec does not give the container: remove it from the container"
    )]
    DeviceNumber {
        /// Its major number.
        major: u32,
        /// Its minor number.
        minor: u32,
    },
    /// It is of a kind that does not belong there.
    #[error("an entry of type {0:?} does not belong into such a stream")]
    Type(char),
    /// It is too large.
    #[error("it has {bytes} bytes, and one file may have {limit}")]
    EntryTooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// All files together are too large.
    #[error("with it the files have {bytes} bytes, and may have {limit} together")]
    TooManyBytes {
        /// The sum.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// There are too many.
    #[error("there are more than {0} entries")]
    TooManyEntries(u64),
    /// There are too many links.
    #[error("there are more than {0} symbolic links")]
    TooManyLinks(usize),
    /// It is there twice.
    #[error("it is there already")]
    Twice,
    /// It would give rights.
    #[error(
        "it is executed with the rights of its owner, which the pod may not gain: set allowPrivilegeEscalation or remove its \
         set-user-ID bit"
    )]
    SetId,
    /// Its owner is no number of a user.
    #[error("its owner {0} is no user or group ID")]
    Owner(u64),
    /// Its header is not right.
    #[error("its header is damaged: {0}")]
    Header(String),
    /// It is only a part of a file.
    #[error(
        "the overlay file system keeps only a part of it here ({0}): mount the node's overlays with redirect_dir=off,metacopy=off"
    )]
    Redirected(&'static str),
}

impl ArchiveError {
    pub(super) fn refused(entry: &[u8], refusal: Refusal) -> Self {
        let shown: String = String::from_utf8_lossy(entry).chars().take(256).collect();
        Self::Refused { entry: shown, refusal }
    }

    pub(super) fn io(what: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io { what, path: path.to_owned(), source: source.into() }
    }
}
