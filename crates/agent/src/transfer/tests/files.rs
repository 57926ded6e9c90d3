//! The files of parts, by themselves.

use super::super::FileError;
use super::super::file::{PartFile, bytes_on_disk, remove};
use super::name;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Mutex;

fn open(folder: &Path) -> Result<PartFile, FileError> {
    let turn = Arc::new(Mutex::new(())).try_lock_owned().unwrap();
    PartFile::open(folder, &name("app"), turn)
}

#[test]
fn a_part_gets_its_name_when_it_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let file = open(folder.path()).unwrap().append(b"one").unwrap();
    assert_eq!((file.length(), file.unsynced()), (3, 3));
    assert_eq!(file.sync().unwrap().unsynced(), 0);
    let mut file = open(folder.path()).unwrap();
    assert!(file.length() == 0 && file.is_unread() && !file.is_whole());
    while file.is_unread() {
        file = file.read_again(1).unwrap();
    }
    let file = file.append(b"two").unwrap();
    assert!(!folder.path().join("app").exists());
    let path = file.finish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"onetwo");
    assert_eq!(path, folder.path().join("app"));
    assert!(open(folder.path()).unwrap().is_whole());
    assert_eq!(bytes_on_disk(folder.path(), &name("app")).unwrap(), 6);
    remove(folder.path(), &name("app")).unwrap();
    remove(folder.path(), &name("app")).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_part_that_begins_again_has_nothing_of_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = open(folder.path()).unwrap().append(b"a long one").unwrap();
    let path = file.restart().unwrap().append(b"short").unwrap().finish().unwrap();
    assert_eq!(fs::read(path).unwrap(), b"short");
}

#[test]
fn files_that_others_made_are_refused() {
    for file in [".app", "app"] {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (path, target) = (folder.path().join(file), outside.path().join("target"));
        fs::write(&target, "stays").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&target, &path).unwrap();
        assert!(matches!(open(folder.path()), Err(FileError::Io { .. })), "a link");
        fs::remove_file(&path).unwrap();
        if fs::hard_link(&target, &path).is_ok() {
            assert!(matches!(open(folder.path()), Err(FileError::Foreign { .. })), "a second name");
            fs::remove_file(&path).unwrap();
        }
        fs::write(&path, "readable").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = open(folder.path()).err().unwrap();
        assert!(error.to_string().contains("is not a private file"), "{error}");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(open(folder.path()).is_err(), "a folder");
        assert_eq!(fs::read(&target).unwrap(), b"stays");
    }
}

#[test]
fn a_name_that_is_taken_stays() {
    let folder = tempfile::tempdir().unwrap();
    let file = open(folder.path()).unwrap().append(b"late").unwrap();
    fs::write(folder.path().join("app"), "first").unwrap();
    assert!(file.finish().is_err());
    assert_eq!(fs::read(folder.path().join("app")).unwrap(), b"first");
}
