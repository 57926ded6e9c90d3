//! What an entry may be, as far as that can be told without the folder that it belongs into.

use super::entry::{EntryPath, OPAQUE, check_target, deleted};
use super::walk::Entry;
use super::{Kind, Limits, Refusal};
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Uid};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use tar::{EntryType, Header};

/// Checks an entry. Where it belongs.
pub(super) fn judge(kind: Kind, entry: &Entry<'_>, limits: &Limits) -> Result<EntryPath, Refusal> {
    let parsed = EntryPath::parse(entry.path)?;
    let device = matches!(entry.kind, EntryType::Char | EntryType::Block);
    let known = match kind {
        Kind::Images => entry.kind == EntryType::Regular,
        Kind::Volume | Kind::RootfsDiff => is_of_a_tree(entry.kind),
    };
    if !known && !device {
        return Err(Refusal::Type(char::from(entry.kind.as_byte())));
    }
    let Some(name) = &parsed.name else {
        // The folder itself is ours, and so are its rights.
        return if entry.kind == EntryType::Directory { Ok(parsed) } else { Err(Refusal::NoPath) };
    };
    if kind == Kind::Images && parsed.parent != "." {
        return Err(Refusal::Folder);
    }
    if kind == Kind::RootfsDiff && deletes(entry, name)? {
        return Ok(parsed);
    }
    if device {
        return Err(Refusal::Device);
    }
    rights(kind, entry.kind, entry.header, limits)?;
    check_link(entry, &parsed.parent, kind == Kind::RootfsDiff)?;
    Ok(parsed)
}

pub(super) fn is_of_a_tree(kind: EntryType) -> bool {
    use EntryType::{Directory, Fifo, Link, Regular, Symlink};
    matches!(kind, Regular | Directory | Symlink | Link | Fifo)
}

/// Whether an entry says what a container has deleted.
fn deletes(entry: &Entry<'_>, name: &OsStr) -> Result<bool, Refusal> {
    if entry.kind == EntryType::Char && is_whiteout(entry.header) {
        return Ok(true);
    }
    if entry.kind == EntryType::Regular && name.as_bytes() == OPAQUE {
        return Ok(true);
    }
    deleted(name).transpose().map(|hidden| hidden.is_some())
}

pub(super) fn is_whiteout(header: &Header) -> bool {
    matches!((header.device_major(), header.device_minor()), (Ok(Some(0)), Ok(Some(0))))
}

/// Checks where a link leads that lies in this folder.
pub(super) fn check_link(entry: &Entry<'_>, folder: &OsStr, absolute_is_inside: bool) -> Result<(), Refusal> {
    match entry.kind {
        EntryType::Symlink => check_target(folder, entry.target.ok_or(Refusal::NoPath)?, absolute_is_inside),
        EntryType::Link => hard_link(entry.target.ok_or(Refusal::NoPath)?).map(|_| ()),
        _ => Ok(()),
    }
}

/// Where a hard link leads: a path from the folder that all is put into.
pub(super) fn hard_link(target: &[u8]) -> Result<EntryPath, Refusal> {
    let to = EntryPath::parse(target).map_err(|refusal| match refusal {
        Refusal::Absolute | Refusal::ParentFolder => outside(target),
        refusal => refusal,
    })?;
    if to.name.is_some() { Ok(to) } else { Err(outside(target)) }
}

pub(super) fn outside(target: &[u8]) -> Refusal {
    Refusal::LinkOutside(String::from_utf8_lossy(target).chars().take(256).collect())
}

/// The owner and the mode of an entry.
pub(super) fn rights(
    kind: Kind,
    of: EntryType,
    header: &Header,
    limits: &Limits,
) -> Result<((Uid, Gid), Mode), Refusal> {
    let damaged = |error: io::Error| Refusal::Header(error.to_string());
    let id = |number: u64| match u32::try_from(number) {
        // The greatest number means to leave the owner as it is.
        Ok(id) if id != u32::MAX => Ok(id),
        _ => Err(Refusal::Owner(number)),
    };
    if kind == Kind::Images {
        let root = (nix::unistd::geteuid(), nix::unistd::getegid());
        return Ok((root, Mode::S_IRUSR | Mode::S_IWUSR));
    }
    let owner = (
        Uid::from_raw(id(header.uid().map_err(damaged)?)?),
        Gid::from_raw(id(header.gid().map_err(damaged)?)?),
    );
    let mode = Mode::from_bits_truncate(header.mode().map_err(damaged)? & 0o7777);
    let executes_as_owner = of == EntryType::Regular && mode.intersects(Mode::S_ISUID | Mode::S_ISGID);
    if executes_as_owner && !limits.allow_setid {
        return Err(Refusal::SetId);
    }
    Ok((owner, mode))
}
