//! The paths and links of entries.

use super::Refusal;
use crate::tree::DEEPEST;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The longest path of an entry or target of a link.
pub(super) const LONGEST_PATH: usize = 4095;
const LONGEST_NAME: usize = 255;

/// Before the name of what was deleted.
pub(super) const WHITEOUT: &[u8] = b".wh.";
/// In a folder that hides what was there before.
pub(super) const OPAQUE: &[u8] = b".wh..wh..opq";

/// A path that stays in its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntryPath {
    /// The folder it lies in; `.` for the folder itself.
    pub(super) parent: OsString,
    /// Its name there; none for the folder itself.
    pub(super) name: Option<OsString>,
}

impl EntryPath {
    /// Checks the path of an entry.
    pub(super) fn parse(path: &[u8]) -> Result<Self, Refusal> {
        if path.is_empty() || path.contains(&0) {
            return Err(Refusal::NoPath);
        }
        if path.len() > LONGEST_PATH {
            return Err(Refusal::PathTooLong(LONGEST_PATH));
        }
        if path.starts_with(b"/") {
            return Err(Refusal::Absolute);
        }
        let mut parts: Vec<&[u8]> = Vec::new();
        for part in path.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => return Err(Refusal::ParentFolder),
                part if part.len() > LONGEST_NAME => return Err(Refusal::PathTooLong(LONGEST_NAME)),
                part => parts.push(part),
            }
        }
        if parts.len() >= DEEPEST {
            return Err(Refusal::TooDeep(DEEPEST));
        }
        let name = parts.pop().map(|name| OsStr::from_bytes(name).to_owned());
        let parent = if parts.is_empty() { b".".to_vec() } else { parts.join(&b'/') };
        Ok(Self { parent: OsString::from_vec(parent), name })
    }
}

/// Checks the target of a symbolic link that lies in this folder: it may name what is there or not, but nothing outside.
/// In a root file system, absolute targets are inside.
pub(super) fn check_target(parent: &OsStr, target: &[u8], absolute_is_inside: bool) -> Result<(), Refusal> {
    let outside = || Refusal::LinkOutside(String::from_utf8_lossy(target).chars().take(256).collect());
    if target.is_empty() || target.contains(&0) {
        return Err(Refusal::NoPath);
    }
    if target.len() > LONGEST_PATH {
        return Err(Refusal::PathTooLong(LONGEST_PATH));
    }
    let absolute = target.starts_with(b"/");
    if absolute && !absolute_is_inside {
        return Err(outside());
    }
    let folder: &[u8] = if absolute { b"" } else { parent.as_bytes() };
    let mut depth = 0_usize;
    for part in folder.split(|byte| *byte == b'/').chain(target.split(|byte| *byte == b'/')) {
        match part {
            b"" | b"." => {}
            b".." => depth = depth.checked_sub(1).ok_or_else(outside)?,
            _ => depth += 1,
        }
    }
    Ok(())
}

/// What a name says was deleted, if it says so.
pub(super) fn deleted(name: &OsStr) -> Option<Result<&OsStr, Refusal>> {
    let rest = name.as_bytes().strip_prefix(WHITEOUT)?;
    Some(match rest {
        b"" => Err(Refusal::NoPath),
        b"." | b".." => Err(Refusal::ParentFolder),
        rest => Ok(OsStr::from_bytes(rest)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart() {
        for (path, parent, name) in [
            ("a", ".", Some("a")),
            ("./a", ".", Some("a")),
            ("a/b/", "a", Some("b")),
            ("a//b/./c", "a/b", Some("c")),
            (".", ".", None),
            ("./", ".", None),
        ] {
            let parsed = EntryPath::parse(path.as_bytes()).unwrap();
            assert_eq!((parsed.parent, parsed.name), (parent.into(), name.map(OsString::from)), "{path}");
        }
    }

    #[test]
    fn targets_stay_in_their_folder() {
        let check =
            |parent: &str, target: &str, root| check_target(OsStr::new(parent), target.as_bytes(), root);
        for (parent, target, root) in [
            (".", "a", false),
            ("a/b", "../../c", false),
            ("a", "./x/../y", false),
            ("a", "/etc/passwd", true),
        ] {
            assert_eq!(check(parent, target, root), Ok(()), "{parent} {target}");
        }
        for (parent, target, root) in [
            (".", "..", false),
            ("a", "../..", false),
            ("a", "b/../../../c", true),
            ("a", "/etc/passwd", false),
            ("a", "/../etc", true),
        ] {
            assert!(matches!(check(parent, target, root), Err(Refusal::LinkOutside(_))), "{parent} {target}");
        }
    }

    #[test]
    fn no_path_leads_out() {
        let parts = ["", ".", "..", "a", "...", "\u{e4}"];
        for number in 0..parts.len().pow(4) {
            let part = |place: u32| parts[number / parts.len().pow(place) % parts.len()];
            let path = [part(0), part(1), part(2), part(3)].join("/");
            if let Ok(parsed) = EntryPath::parse(path.as_bytes()) {
                let whole = std::path::Path::new(&parsed.parent).join(parsed.name.unwrap_or_default());
                let stays = whole.components().all(|part| {
                    matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir)
                });
                assert!(stays && !whole.as_os_str().is_empty(), "{path}");
            }
        }
    }
}
