//! Unpacking a stream of a stranger.

use super::entry::{EntryPath, LONGEST_PATH, OPAQUE, check_target, deleted};
use super::stream::Summed;
use super::{ArchiveError, Kind, Limits, Refusal, Summary};
use crate::tree::{empty, open_folder, open_path, remove_at};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{FchmodatFlags, Mode, fchmod, fchmodat, futimens, mkdirat};
use nix::sys::time::TimeSpec;
use nix::unistd::{Gid, Uid, fchown, fchownat, linkat, mkfifoat, symlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tar::{Archive, EntryType, Header};

/// Unpacks a stream into a folder that exists, and checks that it has the sum `expected`. Only a stream whose sum was
/// checked before may come without one.
///
/// # Errors
/// The stream holds something that it must not, or is not what was announced, or cannot be read; or the folder cannot be
/// written. What was unpacked before stays there and must not be used.
pub fn unpack(
    kind: Kind,
    from: impl Read,
    folder: &Path,
    limits: &Limits,
    expected: Option<&str>,
) -> Result<Summary, ArchiveError> {
    let root = open_path(folder).map_err(|errno| ArchiveError::io("open", folder, errno))?;
    let limit = limits.stream_bytes();
    let mut stream = Summed::new(from, limit);
    let mut unpacker = Unpacker { kind, limits, folder, root, entries: 0, bytes: 0 };
    if let Err(error) = unpacker.all(&mut stream) {
        return Err(match error {
            ArchiveError::Stream(error) => stream.error(error, limit),
            error => error,
        });
    }
    // The sum is that of the whole stream, with what follows the last entry.
    if let Err(error) = io::copy(&mut stream, &mut io::sink()) {
        return Err(stream.error(error, limit));
    }
    let found = stream.sha256();
    if let Some(expected) = expected
        && !found.eq_ignore_ascii_case(expected)
    {
        return Err(ArchiveError::Sum { expected: expected.chars().take(64).collect(), found });
    }
    Ok(Summary { entries: unpacker.entries, bytes: unpacker.bytes, sha256: found })
}

struct Unpacker<'a> {
    kind: Kind,
    limits: &'a Limits,
    folder: &'a Path,
    root: OwnedFd,
    entries: u64,
    bytes: u64,
}

/// Where an entry belongs.
struct Place {
    parent: OwnedFd,
    folder: OsString,
    name: OsString,
    /// The whole path, for messages.
    path: PathBuf,
}

impl Unpacker<'_> {
    fn all(&mut self, stream: &mut Summed<impl Read>) -> Result<(), ArchiveError> {
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
            let target =
                long_target.take().or_else(|| header.link_name_bytes().map(std::borrow::Cow::into_owned));
            self.entries += 1;
            let refused = |refusal| ArchiveError::refused(&path, refusal);
            if self.entries > self.limits.entries {
                return Err(refused(Refusal::TooManyEntries(self.limits.entries)));
            }
            let size = header.entry_size().map_err(|error| refused(Refusal::Header(error.to_string())))?;
            if size > self.limits.entry_bytes {
                return Err(refused(Refusal::EntryTooLarge { bytes: size, limit: self.limits.entry_bytes }));
            }
            self.bytes = self.bytes.saturating_add(size);
            if self.bytes > self.limits.total_bytes {
                let (bytes, limit) = (self.bytes, self.limits.total_bytes);
                return Err(refused(Refusal::TooManyBytes { bytes, limit }));
            }
            match self.one(kind, &header, &path, target.as_deref(), &mut entry) {
                Ok(()) => {}
                Err(Failure::Refused(refusal)) => return Err(refused(refusal)),
                Err(Failure::Other(error)) => return Err(error),
            }
        }
        Ok(())
    }

    fn one(
        &self,
        kind: EntryType,
        header: &Header,
        path: &[u8],
        target: Option<&[u8]>,
        data: &mut impl Read,
    ) -> Result<(), Failure> {
        let parsed = EntryPath::parse(path)?;
        let known = match (self.kind, kind) {
            (_, EntryType::Char | EntryType::Block) => true,
            (Kind::Images, kind) => kind == EntryType::Regular,
            (_, kind) => matches!(
                kind,
                EntryType::Regular
                    | EntryType::Directory
                    | EntryType::Symlink
                    | EntryType::Link
                    | EntryType::Fifo
            ),
        };
        if !known {
            return Err(Refusal::Type(char::from(kind.as_byte())).into());
        }
        let Some(name) = parsed.name else {
            // The folder itself is ours, and so are its rights.
            return if kind == EntryType::Directory { Ok(()) } else { Err(Refusal::NoPath.into()) };
        };
        if self.kind == Kind::Images && parsed.parent != "." {
            return Err(Refusal::Folder.into());
        }
        let parent = open_folder(&self.root, parsed.parent.as_os_str()).map_err(|errno| match errno {
            Errno::ENOENT | Errno::ELOOP | Errno::EXDEV | Errno::ENOTDIR => Failure::Refused(Refusal::Folder),
            errno => self.failed("open", path, errno),
        })?;
        let shown = self.folder.join(OsStr::from_bytes(path));
        let place = Place { parent, folder: parsed.parent, name, path: shown };
        if self.kind == Kind::RootfsDiff {
            if kind == EntryType::Char && is_whiteout(header) {
                return Ok(remove_at(&place.parent, &place.name, &place.path)?);
            }
            if kind == EntryType::Regular && place.name.as_bytes() == OPAQUE {
                let folder =
                    open_folder(&place.parent, ".").map_err(|errno| self.failed("open", path, errno))?;
                return Ok(empty(folder, &place.path, 0)?);
            }
            if let Some(hidden) = deleted(&place.name) {
                return Ok(remove_at(&place.parent, hidden?, &place.path)?);
            }
        }
        if matches!(kind, EntryType::Char | EntryType::Block) {
            return Err(Refusal::Device.into());
        }
        self.make(kind, header, &place, target, data)
    }

    fn make(
        &self,
        kind: EntryType,
        header: &Header,
        place: &Place,
        target: Option<&[u8]>,
        data: &mut impl Read,
    ) -> Result<(), Failure> {
        let (owner, mode) = self.rights(kind, header)?;
        let name = place.name.as_os_str();
        let failed = |what, errno: Errno| match errno {
            Errno::EEXIST => Failure::Refused(Refusal::Twice),
            errno => Failure::Other(ArchiveError::io(what, &place.path, errno)),
        };
        // What the container had replaced is replaced here too, and never written through.
        if self.kind == Kind::RootfsDiff && kind != EntryType::Directory {
            remove_at(&place.parent, name, &place.path)?;
        }
        match kind {
            EntryType::Directory => {
                let folder = self.folder(place)?;
                fchown(&folder, Some(owner.0), Some(owner.1)).map_err(|errno| failed("own", errno))?;
                return fchmod(&folder, mode).map_err(|errno| failed("change", errno));
            }
            EntryType::Symlink => {
                let target = target.ok_or(Refusal::NoPath)?;
                check_target(&place.folder, target, self.kind == Kind::RootfsDiff)?;
                symlinkat(OsStr::from_bytes(target), &place.parent, name)
                    .map_err(|errno| failed("link", errno))?;
            }
            EntryType::Link => return self.hard_link(place, target.ok_or(Refusal::NoPath)?),
            EntryType::Fifo => {
                mkfifoat(&place.parent, name, mode).map_err(|errno| failed("make", errno))?;
                fchmodat(&place.parent, name, mode, FchmodatFlags::FollowSymlink)
                    .map_err(|errno| failed("change", errno))?;
            }
            _ => {
                let how = OpenHow::new()
                    .flags(
                        OFlag::O_WRONLY
                            | OFlag::O_CREAT
                            | OFlag::O_EXCL
                            | OFlag::O_CLOEXEC
                            | OFlag::O_NOFOLLOW,
                    )
                    .mode(Mode::S_IRUSR | Mode::S_IWUSR)
                    .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
                let fd = openat2(&place.parent, name, how).map_err(|errno| failed("make", errno))?;
                let mut file = File::from(fd);
                copy(data, &mut file, &place.path)?;
                fchown(&file, Some(owner.0), Some(owner.1)).map_err(|errno| failed("own", errno))?;
                fchmod(&file, mode).map_err(|errno| failed("change", errno))?;
                let seconds =
                    header.mtime().ok().and_then(|seconds| i64::try_from(seconds).ok()).unwrap_or(0);
                let time = TimeSpec::new(seconds, 0);
                return futimens(&file, &time, &time).map_err(|errno| failed("date", errno));
            }
        }
        fchownat(&place.parent, name, Some(owner.0), Some(owner.1), AtFlags::AT_SYMLINK_NOFOLLOW)
            .map_err(|errno| failed("own", errno))
    }

    /// The folder of an entry, made if it is not there.
    fn folder(&self, place: &Place) -> Result<OwnedFd, Failure> {
        let name = place.name.as_os_str();
        let io = |errno: Errno| Failure::Other(ArchiveError::io("make", &place.path, errno));
        match mkdirat(&place.parent, name, Mode::S_IRWXU) {
            Ok(()) => {}
            Err(Errno::EEXIST) if self.kind == Kind::RootfsDiff => {
                match open_folder(&place.parent, name) {
                    Ok(folder) => return Ok(folder),
                    // The image has a file or a link there; the container had put a folder in its place.
                    Err(Errno::ENOTDIR | Errno::ELOOP) => {
                        remove_at(&place.parent, name, &place.path)?;
                        mkdirat(&place.parent, name, Mode::S_IRWXU).map_err(io)?;
                    }
                    Err(Errno::EXDEV) => return Err(Refusal::Folder.into()),
                    Err(errno) => return Err(io(errno)),
                }
            }
            Err(Errno::EEXIST) => return Err(Refusal::Twice.into()),
            Err(errno) => return Err(io(errno)),
        }
        open_folder(&place.parent, name).map_err(io)
    }

    fn hard_link(&self, place: &Place, target: &[u8]) -> Result<(), Failure> {
        let outside = || Refusal::LinkOutside(String::from_utf8_lossy(target).chars().take(256).collect());
        let to = EntryPath::parse(target).map_err(|refusal| match refusal {
            Refusal::Absolute | Refusal::ParentFolder => outside(),
            refusal => refusal,
        })?;
        let name = to.name.ok_or_else(outside)?;
        let folder = open_folder(&self.root, to.parent.as_os_str()).map_err(|_| outside())?;
        linkat(&folder, name.as_os_str(), &place.parent, place.name.as_os_str(), AtFlags::empty()).map_err(
            |errno| match errno {
                Errno::EEXIST => Failure::Refused(Refusal::Twice),
                errno => Failure::Other(ArchiveError::io("link", &place.path, errno)),
            },
        )
    }

    /// The owner and the mode of an entry.
    fn rights(&self, kind: EntryType, header: &Header) -> Result<((Uid, Gid), Mode), Failure> {
        let damaged = |error: io::Error| Refusal::Header(error.to_string());
        let id = |number: u64| match u32::try_from(number) {
            // The greatest number means to leave the owner as it is.
            Ok(id) if id != u32::MAX => Ok(id),
            _ => Err(Refusal::Owner(number)),
        };
        if self.kind == Kind::Images {
            let root = (nix::unistd::geteuid(), nix::unistd::getegid());
            return Ok((root, Mode::S_IRUSR | Mode::S_IWUSR));
        }
        let owner = (
            Uid::from_raw(id(header.uid().map_err(damaged)?)?),
            Gid::from_raw(id(header.gid().map_err(damaged)?)?),
        );
        let mode = Mode::from_bits_truncate(header.mode().map_err(damaged)? & 0o7777);
        let executes_as_owner = kind == EntryType::Regular && mode.intersects(Mode::S_ISUID | Mode::S_ISGID);
        if executes_as_owner && !self.limits.allow_setid {
            return Err(Refusal::SetId.into());
        }
        Ok((owner, mode))
    }

    fn failed(&self, what: &'static str, path: &[u8], errno: Errno) -> Failure {
        Failure::Other(ArchiveError::io(what, &self.folder.join(OsStr::from_bytes(path)), errno))
    }
}

/// Why an entry is not unpacked.
enum Failure {
    Refused(Refusal),
    Other(ArchiveError),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<crate::tree::RemoveError> for Failure {
    fn from(error: crate::tree::RemoveError) -> Self {
        Self::Other(error.into())
    }
}

fn is_whiteout(header: &Header) -> bool {
    matches!((header.device_major(), header.device_minor()), (Ok(Some(0)), Ok(Some(0))))
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

fn copy(from: &mut impl Read, to: &mut File, path: &Path) -> Result<(), Failure> {
    let mut buffer = vec![0; 128 * 1024];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Failure::Other(ArchiveError::Stream(error))),
        };
        let written = io::Write::write_all(to, &buffer[..read]);
        written.map_err(|error| Failure::Other(ArchiveError::io("write", path, error)))?;
    }
}
