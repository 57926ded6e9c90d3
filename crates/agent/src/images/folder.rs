//! The folder of a checkpoint: which files it has, and how they are read.

use super::image::Image;
use super::kind::{Kind, kind_of};
use super::refusal::{Refusal, Unfit};
use rustix::fs::{Dir, FileType, Mode, OFlags, fstat, open, openat};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// What a checkpoint may have at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Files.
    pub files: usize,
    /// Bytes of an image that is decoded.
    pub image_bytes: u64,
    /// Bytes of all files together.
    pub total_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { files: 100_000, image_bytes: 32 << 20, total_bytes: 256 << 30 }
    }
}

/// A file of the folder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) number: u64,
    pub(super) bytes: u64,
}

/// The folder, and the files in it: all are regular, and have names that are known.
#[derive(Debug)]
pub(super) struct Folder {
    fd: OwnedFd,
    path: PathBuf,
    limits: Limits,
    entries: BTreeMap<String, Entry>,
}

impl Folder {
    pub(super) fn open(path: &Path, limits: Limits) -> Result<Self, Refusal> {
        let failed = |errno: rustix::io::Errno| Refusal::Io { path: path.to_owned(), source: errno.into() };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = open(path, flags, Mode::empty()).map_err(failed)?;
        let mut folder = Self { fd, path: path.to_owned(), limits, entries: BTreeMap::new() };
        let mut total = 0_u64;
        for entry in Dir::read_from(&folder.fd).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy();
            if name == "." || name == ".." {
                continue;
            }
            if folder.entries.len() >= limits.files {
                return Err(Refusal::unfit(&name, Unfit::TooManyFiles { limit: limits.files }));
            }
            let file = folder.entry(&name)?;
            total = total.saturating_add(file.bytes);
            if total > limits.total_bytes {
                let unfit = Unfit::TooManyBytes { bytes: total, limit: limits.total_bytes };
                return Err(Refusal::unfit(&name, unfit));
            }
            folder.entries.insert(name.into_owned(), file);
        }
        Ok(folder)
    }

    fn entry(&self, name: &str) -> Result<Entry, Refusal> {
        // A name that is not UTF-8 was changed by `to_string_lossy`, and is none that is known.
        let (kind, number) = kind_of(name).ok_or_else(|| Refusal::unfit(name, Unfit::UnknownName))?;
        let (_, bytes) = self.file(name)?;
        match kind {
            Kind::Refused => Err(Refusal::unfit(name, Unfit::Kind)),
            // The two magic numbers alone are empty too.
            Kind::Network if bytes > 8 => Err(Refusal::unfit(name, Unfit::Network { bytes })),
            _ => Ok(Entry { kind, number, bytes }),
        }
    }

    fn file(&self, name: &str) -> Result<(File, u64), Refusal> {
        // Without NONBLOCK, a pipe with that name would block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let failed = |errno: rustix::io::Errno| match errno {
            rustix::io::Errno::LOOP | rustix::io::Errno::NXIO => Refusal::unfit(name, Unfit::NotRegular),
            rustix::io::Errno::NOENT => Refusal::unfit(name, Unfit::Missing),
            errno => Refusal::Io { path: self.path.join(name), source: errno.into() },
        };
        let fd = openat(&self.fd, name, flags, Mode::empty()).map_err(failed)?;
        let stat = fstat(&fd).map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Refusal::unfit(name, Unfit::NotRegular));
        }
        Ok((File::from(fd), u64::try_from(stat.st_size).unwrap_or(u64::MAX)))
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, Entry)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), *entry))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    pub(super) fn total_bytes(&self) -> u64 {
        self.entries.values().map(|entry| entry.bytes).sum()
    }

    /// Reads an image whole.
    pub(super) fn read(&self, name: &str) -> Result<Image, Refusal> {
        let limit = self.limits.image_bytes;
        let bytes = self.entries.get(name).map_or(0, |entry| entry.bytes);
        if bytes > limit {
            return Err(Refusal::unfit(name, Unfit::TooLarge { bytes, limit }));
        }
        self.start(name, limit)
    }

    /// Reads an image if it is there.
    pub(super) fn read_if_there(&self, name: &str) -> Result<Option<Image>, Refusal> {
        if self.has(name) { self.read(name).map(Some) } else { Ok(None) }
    }

    /// Reads the start of an image.
    pub(super) fn start(&self, name: &str, bytes: u64) -> Result<Image, Refusal> {
        let (file, _) = self.file(name)?;
        let mut read = Vec::new();
        file.take(bytes)
            .read_to_end(&mut read)
            .map_err(|source| Refusal::Io { path: self.path.join(name), source })?;
        Ok(Image::new(name.to_owned(), read))
    }
}
