//! Removal of a folder that never leaves it: neither by a link nor by a mount.
//!
//! CRIU mounts the cgroups of the node below its working folder while it restores. Whoever removes that folder by walking
//! through it walks into the node's cgroups.

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{SFlag, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// How many folders may lie in each other. Each of them is an open file while it is removed.
pub(crate) const DEEPEST: usize = 128;

/// Why a folder is not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// Something is mounted in it.
    #[error("{path:?} is a mount: end what mounted it (`grep {path:?} /proc/mounts`), then it is removed")]
    Mounted {
        /// The mount.
        path: PathBuf,
    },
    /// It is too deep.
    #[error("{path:?} lies more than {DEEPEST} folders deep: remove it by hand")]
    TooDeep {
        /// The folder.
        path: PathBuf,
    },
    /// The system refuses it.
    #[error("cannot remove {path:?}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl RemoveError {
    fn new(path: &Path, errno: Errno) -> Self {
        match errno {
            Errno::EXDEV | Errno::EBUSY => Self::Mounted { path: path.to_owned() },
            errno => Self::Io { path: path.to_owned(), source: errno.into() },
        }
    }
}

/// Opens a folder below another one, and nothing else: no link, no mount, no way up.
pub(crate) fn open_folder(parent: impl AsFd, name: &(impl nix::NixPath + ?Sized)) -> nix::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW)
        .resolve(
            ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_XDEV,
        );
    openat2(parent, name, how)
}

/// Opens a folder by its path, links and mounts on the way included.
pub(crate) fn open_path(path: &Path) -> nix::Result<OwnedFd> {
    let how = OpenHow::new().flags(OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC);
    openat2(AT_FDCWD, path, how)
}

/// Removes a folder with all that is in it. One that is not there is fine.
///
/// # Errors
/// Something is mounted in it, or it cannot be removed. What could be removed before is gone.
pub(crate) fn remove(path: &Path) -> Result<(), RemoveError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(RemoveError::new(path, Errno::EINVAL));
    };
    let parent = match open_path(parent) {
        Err(Errno::ENOENT) => return Ok(()),
        opened => opened.map_err(|errno| RemoveError::new(parent, errno))?,
    };
    let fd = match open_folder(&parent, name) {
        Err(Errno::ENOENT) => return Ok(()),
        fd => fd.map_err(|errno| RemoveError::new(path, errno))?,
    };
    empty(fd, path, 0)?;
    unlinkat(&parent, name, UnlinkatFlags::RemoveDir).map_err(|errno| RemoveError::new(path, errno))
}

/// Removes all that is in a folder, but for the folder itself. What is mounted in it is an error.
///
/// # Errors
/// Something is mounted in it, or it cannot be removed. What could be removed before is gone.
pub fn empty_folder(path: &Path) -> Result<(), RemoveError> {
    empty(open_path(path).map_err(|errno| RemoveError::new(path, errno))?, path, 0)
}

/// Removes a file or folder of an open folder; `path` is what it is called in messages.
pub(crate) fn remove_at(parent: impl AsFd + Copy, name: &OsStr, path: &Path) -> Result<(), RemoveError> {
    remove_entry(parent, name, path, 0)
}

fn remove_entry(
    parent: impl AsFd + Copy,
    name: &OsStr,
    path: &Path,
    depth: usize,
) -> Result<(), RemoveError> {
    let failed = |errno| RemoveError::new(path, errno);
    let stat = match fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Err(Errno::ENOENT) => return Ok(()),
        stat => stat.map_err(failed)?,
    };
    let flag = if SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR {
        empty(open_folder(parent, name).map_err(failed)?, path, depth)?;
        UnlinkatFlags::RemoveDir
    } else {
        UnlinkatFlags::NoRemoveDir
    };
    match unlinkat(parent, name, flag) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(errno) => Err(failed(errno)),
    }
}

/// The names in a folder, in their order.
pub(crate) fn names(folder: impl AsFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    names.sort();
    Ok(names)
}

/// Removes all that is in a folder.
pub(crate) fn empty(folder: OwnedFd, path: &Path, depth: usize) -> Result<(), RemoveError> {
    if depth >= DEEPEST {
        return Err(RemoveError::TooDeep { path: path.to_owned() });
    }
    let names = names(&folder).map_err(|source| RemoveError::Io { path: path.to_owned(), source })?;
    for name in names {
        remove_entry(&folder, &name, &path.join(&name), depth + 1)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_folder_goes_with_all_that_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::create_dir_all(path.join("a/b")).unwrap();
        fs::write(path.join("a/b/c"), "c").unwrap();
        remove(&path).unwrap();
        assert!(!path.exists());
        remove(&path).unwrap();
        remove(&path.join("a")).unwrap();
    }

    #[test]
    fn what_a_link_points_to_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let outside = folder.path().join("outside");
        fs::create_dir_all(&path).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("file"), "stays").unwrap();
        std::os::unix::fs::symlink(&outside, path.join("link")).unwrap();
        remove(&path).unwrap();
        assert!(!path.exists() && outside.join("file").exists());
        std::os::unix::fs::symlink(&outside, &path).unwrap();
        assert!(remove(&path).is_err(), "the folder itself is a link");
        assert!(outside.join("file").exists());
    }

    #[test]
    fn a_folder_that_is_too_deep_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::create_dir_all(path.join("d/".repeat(DEEPEST + 2))).unwrap();
        assert!(matches!(remove(&path), Err(RemoveError::TooDeep { .. })));
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_mount_is_not_walked_into() {
        use nix::mount::{MntFlags, MsFlags, mount, umount2};
        let folder = tempfile::tempdir().unwrap();
        let (path, outside) = (folder.path().join("x"), folder.path().join("outside"));
        let inner = path.join("a/mount");
        fs::create_dir_all(&inner).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("file"), "stays").unwrap();
        // A bind mount has the device number of the folder around it: only the kernel knows that it is a mount.
        if mount(Some(&outside), &inner, None::<&str>, MsFlags::MS_BIND, None::<&str>).is_err() {
            eprintln!("not tried: this user may not mount");
            return;
        }
        let removed = remove(&path);
        umount2(&inner, MntFlags::MNT_DETACH).unwrap();
        assert!(matches!(removed, Err(RemoveError::Mounted { path }) if path == inner));
        assert!(outside.join("file").exists());
        remove(&path).unwrap();
    }
}
