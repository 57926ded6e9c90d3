//! Links in a container lead nowhere else.
//!
//! What the container had changed in its root, and what is in its volumes, comes from another node, and CRIU follows the links in
//! it as root, while folders of the node can be reached through `/proc`. So all paths that the images refer to are looked up here
//! first, when everything is in its place, in the container's root and nowhere else.

use super::{Bundle, WrapperError};
use crate::store::Paths;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2, readlinkat};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

/// Where the links are that lead out of any root.
const MAGIC: [&str; 5] = ["/proc", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"];

/// Checks that no path leads out of the container, or elsewhere than it says.
pub(super) fn check(bundle: &Bundle, paths: &Paths) -> Result<(), WrapperError> {
    let container = Container::open(bundle, &paths.links)?;
    for path in &paths.exact {
        container.exact(Path::new(path))?;
    }
    for path in &paths.followed {
        container.followed(Path::new(path))?;
    }
    Ok(())
}

/// The file systems of a container, before they are mounted.
struct Container<'a> {
    root: OwnedFd,
    mounts: Vec<Mount>,
    /// Those in file systems that are new.
    links: &'a BTreeMap<String, String>,
}

/// A mount, and the folder of the node that is seen there; none for a new file system.
struct Mount {
    at: PathBuf,
    source: Option<OwnedFd>,
}

impl<'c> Container<'c> {
    fn open(bundle: &Bundle, links: &'c BTreeMap<String, String>) -> Result<Self, WrapperError> {
        let mut container = Self { root: open(&bundle.rootfs())?, mounts: Vec::new(), links };
        for (destination, source) in bundle.mounts() {
            let source = source.map(|source| open(&source)).transpose()?;
            let at = container.resolve(&destination)?;
            container.mounts.push(Mount { at, source });
        }
        Ok(container)
    }

    /// Where a path is looked up: a folder, and the path below it. Nowhere if it lies in a file system that is new.
    fn place<'a>(&self, path: &'a Path) -> Option<(&OwnedFd, &'a Path)> {
        let mounts = self.mounts.iter().filter(|mount| path != mount.at && path.starts_with(&mount.at));
        match mounts.max_by_key(|mount| mount.at.components().count()) {
            Some(mount) => Some((mount.source.as_ref()?, path.strip_prefix(&mount.at).ok()?)),
            None => Some((&self.root, path.strip_prefix("/").unwrap_or(path))),
        }
    }

    /// The target of a link in a file system that is new.
    fn new_link(&self, path: &Path) -> Option<&'c String> {
        self.links.get(path.to_str()?)
    }

    /// Checks a path that must not lead through a link.
    fn exact(&self, path: &Path) -> Result<(), WrapperError> {
        if path.ancestors().any(|path| self.new_link(path).is_some()) {
            return Err(WrapperError::Link { path: path.to_owned(), to: None });
        }
        let Some((folder, below)) = self.place(path).filter(|(_, below)| *below != Path::new("")) else {
            return Ok(());
        };
        let resolve = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_SYMLINKS;
        let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC).resolve(resolve);
        match openat2(folder, below, how) {
            // What is not there cannot be opened either.
            Ok(_) | Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(()),
            Err(Errno::ELOOP) => Err(WrapperError::Link { path: path.to_owned(), to: None }),
            Err(errno) => Err(WrapperError::io("look up in the container", path, errno)),
        }
    }

    /// Checks a path that may lead through links, but not to the files of a process.
    fn followed(&self, path: &Path) -> Result<(), WrapperError> {
        let to = self.resolve(path)?;
        if MAGIC.iter().any(|magic| to.starts_with(magic)) {
            return Err(WrapperError::Link { path: path.to_owned(), to: Some(to) });
        }
        Ok(())
    }

    /// Where a path leads in the container, whether it is there or not.
    fn resolve(&self, path: &Path) -> Result<PathBuf, WrapperError> {
        let mut at = PathBuf::from("/");
        let mut rest: VecDeque<OsString> = VecDeque::new();
        let mut links = 0;
        let put_first = |rest: &mut VecDeque<OsString>, path: &Path| {
            for part in path.components().rev() {
                match part {
                    Component::Normal(_) | Component::ParentDir => {
                        rest.push_front(part.as_os_str().to_owned())
                    }
                    Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
                }
            }
        };
        put_first(&mut rest, path);
        while let Some(part) = rest.pop_front() {
            if part == ".." {
                at.pop();
                continue;
            }
            let next = at.join(&part);
            let Some(target) = self.link(&next)? else {
                at = next;
                continue;
            };
            links += 1;
            if links > MOST_LINKS {
                return Err(WrapperError::io("look up in the container", path, Errno::ELOOP));
            }
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            put_first(&mut rest, &target);
        }
        Ok(at)
    }

    /// The target of a link; nothing for what is none. No part of the path before it is a link.
    fn link(&self, path: &Path) -> Result<Option<PathBuf>, WrapperError> {
        if let Some(target) = self.new_link(path) {
            return Ok(Some(PathBuf::from(target)));
        }
        let Some((folder, below)) = self.place(path) else { return Ok(None) };
        let resolve = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_SYMLINKS;
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let found = openat2(folder, below, OpenHow::new().flags(flags).resolve(resolve));
        match found.and_then(|link| readlinkat(link, "")) {
            Ok(target) => Ok(Some(PathBuf::from(target))),
            // It is not there, or is no link.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::EINVAL) => Ok(None),
            Err(errno) => Err(WrapperError::io("look up in the container", path, errno)),
        }
    }
}

fn open(path: &Path) -> Result<OwnedFd, WrapperError> {
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC);
    openat2(AT_FDCWD, path, how).map_err(|errno| WrapperError::io("open", path, errno))
}

#[cfg(test)]
#[path = "links_tests.rs"]
mod tests;
