//! What belongs to a checkpoint, as one stream: the images of CRIU, the contents of a volume, or what a container changed in
//! its root file system.
//!
//! The stream is a tar of few kinds of entries. Unpacking takes it as input of a stranger: every entry is bounded, and is put
//! where it belongs by a walk that no link and no mount leads astray. What is not preserved: extended attributes, the times of
//! folders, sockets.

mod compress;
mod entry;
mod error;
mod inspect;
mod judge;
mod pack;
mod stream;
mod unpack;
mod walk;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod inspect_tests;
#[cfg(test)]
mod tests;

pub use compress::{compressed, decompressed};
pub use error::{ArchiveError, Refusal};
pub use inspect::{Device, Memory, inspect, inspect_memory};
pub use pack::pack;
pub use unpack::unpack;

/// What a stream holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The images of CRIU: files in one folder, nothing else.
    Images,
    /// The contents of a volume: files, folders, links within it, and pipes.
    Volume,
    /// What a container changed in its root file system: as a volume, and what it deleted there.
    RootfsDiff,
}

/// How much a stream may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many bytes all files may have together.
    pub total_bytes: u64,
    /// How many bytes one file may have.
    pub entry_bytes: u64,
    /// How many entries there may be.
    pub entries: u64,
    /// Whether files may be executed with the rights of their owner. Only where the pod may gain rights anyway.
    pub allow_setid: bool,
}

impl Limits {
    /// How long the whole stream may be: the files, and what names them.
    fn stream_bytes(&self) -> u64 {
        const OF_AN_ENTRY: u64 = 16 * 1024;
        self.total_bytes.saturating_add(self.entries.saturating_add(4).saturating_mul(OF_AN_ENTRY))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { total_bytes: 8 << 30, entry_bytes: 8 << 30, entries: 200_000, allow_setid: false }
    }
}

/// What a stream held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How many entries.
    pub entries: u64,
    /// How many bytes in files.
    pub bytes: u64,
    /// The SHA-256 sum of the stream, before it is compressed, in hexadecimal digits.
    pub sha256: String,
}
