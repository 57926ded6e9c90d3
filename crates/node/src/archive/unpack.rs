//! Unpacking a stream of a stranger.

use super::entry::{OPAQUE, deleted};
use super::judge::{hard_link, is_whiteout, judge, outside, rights};
use super::stream::Summed;
use super::walk::{Entry, Failure, walk};
use super::{ArchiveError, Kind, Limits, Refusal, Summary};
use crate::tree::{empty, open_folder, open_path, remove_at};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{FchmodatFlags, Mode, fchmod, fchmodat, futimens, mkdirat};
use nix::sys::time::TimeSpec;
use nix::unistd::{fchown, fchownat, linkat, mkfifoat, symlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tar::EntryType;

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
    let unpacker = Unpacker { kind, limits, folder, root };
    let counted = match walk(&mut stream, limits, |entry, data| unpacker.one(entry, data)) {
        Err(ArchiveError::Stream(error)) => return Err(stream.error(error, limit)),
        walked => walked?,
    };
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
    Ok(Summary { entries: counted.entries, bytes: counted.bytes, sha256: found })
}

struct Unpacker<'a> {
    kind: Kind,
    limits: &'a Limits,
    folder: &'a Path,
    root: OwnedFd,
}

/// Where an entry belongs.
struct Place {
    parent: OwnedFd,
    name: OsString,
    /// The whole path, for messages.
    path: PathBuf,
}

impl Unpacker<'_> {
    fn one(&self, entry: &Entry<'_>, data: &mut dyn Read) -> Result<(), Failure> {
        let parsed = judge(self.kind, entry, self.limits)?;
        let (kind, header, path) = (entry.kind, entry.header, entry.path);
        // The folder itself is ours.
        let Some(name) = parsed.name else { return Ok(()) };
        let parent = open_folder(&self.root, parsed.parent.as_os_str()).map_err(|errno| match errno {
            Errno::ENOENT | Errno::ELOOP | Errno::EXDEV | Errno::ENOTDIR => Failure::Refused(Refusal::Folder),
            errno => self.failed("open", path, errno),
        })?;
        let shown = self.folder.join(OsStr::from_bytes(path));
        let place = Place { parent, name, path: shown };
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
        self.make(entry, &place, data)
    }

    fn make(&self, entry: &Entry<'_>, place: &Place, data: &mut dyn Read) -> Result<(), Failure> {
        let Entry { kind, header, target, .. } = *entry;
        let (owner, mode) = rights(self.kind, kind, header, self.limits)?;
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
                symlinkat(OsStr::from_bytes(target), &place.parent, name)
                    .map_err(|errno| failed("link", errno))?;
            }
            EntryType::Link => return self.link(place, target.ok_or(Refusal::NoPath)?),
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

    fn link(&self, place: &Place, target: &[u8]) -> Result<(), Failure> {
        let to = hard_link(target)?;
        let name = to.name.ok_or_else(|| outside(target))?;
        let folder = open_folder(&self.root, to.parent.as_os_str()).map_err(|_| outside(target))?;
        linkat(&folder, name.as_os_str(), &place.parent, place.name.as_os_str(), AtFlags::empty()).map_err(
            |errno| match errno {
                Errno::EEXIST => Failure::Refused(Refusal::Twice),
                errno => Failure::Other(ArchiveError::io("link", &place.path, errno)),
            },
        )
    }

    fn failed(&self, what: &'static str, path: &[u8], errno: Errno) -> Failure {
        Failure::Other(ArchiveError::io(what, &self.folder.join(OsStr::from_bytes(path)), errno))
    }
}

impl From<crate::tree::RemoveError> for Failure {
    fn from(error: crate::tree::RemoveError) -> Self {
        Self::Other(error.into())
    }
}

fn copy(from: &mut dyn Read, to: &mut File, path: &Path) -> Result<(), Failure> {
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
