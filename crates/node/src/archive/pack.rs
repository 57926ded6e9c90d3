//! Packing a folder.

use super::entry::{EntryPath, LONGEST_PATH, OPAQUE, WHITEOUT, check_target};
use super::stream::{Exactly, Summed};
use super::{ArchiveError, Kind, Limits, Refusal, Summary};
use crate::tree::{DEEPEST, names, open_folder, open_path};
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat2, readlinkat};
use nix::sys::stat::{FileStat, SFlag, fstatat};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tar::{Builder, EntryType, Header};

/// Packs what is in a folder. The same folder gives the same stream.
///
/// # Errors
/// Something in it cannot be read or cannot be moved, or it is more than `limits` allow.
pub fn pack(kind: Kind, folder: &Path, to: impl Write, limits: &Limits) -> Result<Summary, ArchiveError> {
    let root = open_path(folder).map_err(|errno| ArchiveError::io("open", folder, errno))?;
    let mut packer = Packer {
        kind,
        limits,
        folder,
        builder: Builder::new(Summed::new(to, limits.stream_bytes())),
        links: BTreeMap::new(),
        entries: 0,
        bytes: 0,
    };
    packer.folder(root, Path::new(""), 0)?;
    let Packer { builder, entries, bytes, .. } = packer;
    let limit = limits.stream_bytes();
    let mut sum = builder.into_inner().map_err(ArchiveError::Stream)?;
    sum.flush().map_err(|error| sum.error(error, limit))?;
    Ok(Summary { entries, bytes, sha256: sum.sha256() })
}

struct Packer<'a, To: Write> {
    kind: Kind,
    limits: &'a Limits,
    folder: &'a Path,
    builder: Builder<Summed<To>>,
    /// Where a file with several names was packed first.
    links: BTreeMap<(u64, u64), PathBuf>,
    entries: u64,
    bytes: u64,
}

impl<To: Write> Packer<'_, To> {
    fn folder(&mut self, fd: OwnedFd, path: &Path, depth: usize) -> Result<(), ArchiveError> {
        if depth >= DEEPEST {
            return Err(refused(path, Refusal::TooDeep(DEEPEST)));
        }
        if self.kind == Kind::RootfsDiff && depth > 0 && self.overlay(&fd, "opaque", path)? {
            let mut header = Header::new_gnu();
            header.set_entry_type(EntryType::Regular);
            header.set_mode(0o600);
            self.entry(&mut header, &path.join(OsStr::from_bytes(OPAQUE)), None)?;
        }
        for name in names(&fd).map_err(|error| self.io("list", path, error))? {
            self.one(&fd, &name, &path.join(&name), depth)?;
        }
        Ok(())
    }

    fn one(&mut self, parent: &OwnedFd, name: &OsStr, path: &Path, depth: usize) -> Result<(), ArchiveError> {
        let stat = fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW)
            .map_err(|errno| self.io("look at", path, errno))?;
        EntryPath::parse(path.as_os_str().as_bytes()).map_err(|refusal| refused(path, refusal))?;
        let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
        if self.kind == Kind::Images && kind != SFlag::S_IFREG {
            return Err(refused(path, Refusal::Type('?')));
        }
        if self.kind == Kind::RootfsDiff && name.as_bytes().starts_with(WHITEOUT) {
            // It would delete a file at the other end.
            return Err(refused(path, Refusal::NoPath));
        }
        let mut header = header(&stat);
        match kind {
            SFlag::S_IFREG => return self.file(parent, name, path, &stat, &mut header),
            SFlag::S_IFDIR => {
                let inner = open_folder(parent, name).map_err(|errno| self.io("open", path, errno))?;
                if self.kind == Kind::RootfsDiff && self.overlay(&inner, "redirect", path)? {
                    return Err(refused(path, Refusal::Redirected("redirect")));
                }
                header.set_entry_type(EntryType::Directory);
                self.entry(&mut header, path, None)?;
                return self.folder(inner, path, depth + 1);
            }
            SFlag::S_IFLNK => {
                let target = readlinkat(parent, name).map_err(|errno| self.io("read", path, errno))?;
                let folder = path.parent().unwrap_or(path);
                check_target(folder.as_os_str(), target.as_bytes(), self.kind == Kind::RootfsDiff)
                    .map_err(|refusal| refused(path, refusal))?;
                header.set_entry_type(EntryType::Symlink);
                return self.link(&mut header, path, &target);
            }
            SFlag::S_IFIFO => header.set_entry_type(EntryType::Fifo),
            // A socket belongs to a process, which makes it again or has it in its images.
            SFlag::S_IFSOCK => return Ok(()),
            SFlag::S_IFCHR if self.kind == Kind::RootfsDiff && stat.st_rdev == 0 => {
                let mut whiteout = OsString::from(OsStr::from_bytes(WHITEOUT));
                whiteout.push(name);
                header.set_entry_type(EntryType::Regular);
                return self.entry(&mut header, &path.with_file_name(whiteout), None);
            }
            _ => return Err(refused(path, Refusal::Device)),
        }
        self.entry(&mut header, path, None)
    }

    fn file(
        &mut self,
        parent: &OwnedFd,
        name: &OsStr,
        path: &Path,
        stat: &FileStat,
        header: &mut Header,
    ) -> Result<(), ArchiveError> {
        if stat.st_mode & 0o6000 != 0 && !self.limits.allow_setid {
            return Err(refused(path, Refusal::SetId));
        }
        if stat.st_nlink > 1 {
            if let Some(first) = self.links.get(&(stat.st_dev, stat.st_ino)).cloned() {
                header.set_entry_type(EntryType::Link);
                return self.link(header, path, first.as_os_str());
            }
            self.links.insert((stat.st_dev, stat.st_ino), path.to_owned());
        }
        let how = OpenHow::new()
            .flags(OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW)
            .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
        let file = openat2(parent, name, how).map_err(|errno| self.io("open", path, errno))?;
        if self.kind == Kind::RootfsDiff && self.overlay(&file, "metacopy", path)? {
            return Err(refused(path, Refusal::Redirected("metacopy")));
        }
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        header.set_entry_type(EntryType::Regular);
        header.set_size(size);
        if size > self.limits.entry_bytes {
            return Err(refused(
                path,
                Refusal::EntryTooLarge { bytes: size, limit: self.limits.entry_bytes },
            ));
        }
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > self.limits.total_bytes {
            let (bytes, limit) = (self.bytes, self.limits.total_bytes);
            return Err(refused(path, Refusal::TooManyBytes { bytes, limit }));
        }
        self.entry(header, path, Some(Exactly { inner: File::from(file), left: size }))
    }

    fn count(&mut self, path: &Path) -> Result<(), ArchiveError> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(refused(path, Refusal::TooManyEntries(self.limits.entries)));
        }
        Ok(())
    }

    fn entry(
        &mut self,
        header: &mut Header,
        path: &Path,
        data: Option<Exactly<File>>,
    ) -> Result<(), ArchiveError> {
        self.count(path)?;
        match data {
            Some(data) => self.builder.append_data(header, path, data),
            None => {
                header.set_size(0);
                self.builder.append_data(header, path, std::io::empty())
            }
        }
        .map_err(|error| self.io("pack", path, error))
    }

    fn link(&mut self, header: &mut Header, path: &Path, target: &OsStr) -> Result<(), ArchiveError> {
        self.count(path)?;
        if target.len() > LONGEST_PATH {
            return Err(refused(path, Refusal::PathTooLong(LONGEST_PATH)));
        }
        header.set_size(0);
        self.builder.append_link(header, path, target).map_err(|error| self.io("pack", path, error))
    }

    /// Whether the overlay file system has marked a file or folder.
    fn overlay(&self, fd: impl AsFd, mark: &str, path: &Path) -> Result<bool, ArchiveError> {
        let mut value = [0_u8; 256];
        for namespace in ["trusted", "user"] {
            let name = format!("{namespace}.overlay.{mark}");
            match rustix::fs::fgetxattr(&fd, name.as_str(), &mut value) {
                // An opaque folder says `y`; `x` is another mark in the same place.
                Ok(length) if mark != "opaque" || value[..length].starts_with(b"y") => return Ok(true),
                Ok(_) => {}
                Err(rustix::io::Errno::NODATA | rustix::io::Errno::OPNOTSUPP) => {}
                // The value is longer than any mark of ours, so it is one.
                Err(rustix::io::Errno::RANGE) => return Ok(true),
                Err(errno) => return Err(self.io("read the attributes of", path, errno)),
            }
        }
        Ok(false)
    }

    fn io(&self, what: &'static str, path: &Path, error: impl Into<std::io::Error>) -> ArchiveError {
        ArchiveError::io(what, &self.folder.join(path), error)
    }
}

fn refused(path: &Path, refusal: Refusal) -> ArchiveError {
    ArchiveError::refused(path.as_os_str().as_bytes(), refusal)
}

fn header(stat: &FileStat) -> Header {
    let mut header = Header::new_gnu();
    header.set_mode(stat.st_mode & 0o7777);
    header.set_uid(u64::from(stat.st_uid));
    header.set_gid(u64::from(stat.st_gid));
    header.set_mtime(u64::try_from(stat.st_mtime).unwrap_or(0));
    header
}
