//! The store, on a temporary folder.

use super::{Mark, Paths, Presence, RemoveError, Store, StoreError};
use crate::Name;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

fn store() -> (TempDir, Store, Name, Name) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("restore"));
    (folder, store, Name::new("migration", "move-1").unwrap(), Name::new("container", "a").unwrap())
}

fn fill(store: &Store, migration: &Name, container: &Name) {
    let incoming = store.begin(migration, container).unwrap();
    fs::write(incoming.images().join("core-1.img"), "memory").unwrap();
    fs::write(incoming.rootfs_diff(), "diff").unwrap();
    incoming.finish().unwrap();
}

#[test]
fn a_checkpoint_appears_when_it_is_complete() {
    let (_folder, store, migration, a) = store();
    let incoming = store.begin(&migration, &a).unwrap();
    fs::write(incoming.images().join("core-1.img"), "memory").unwrap();
    assert_eq!(store.presence(&migration, &a), Presence::None);
    assert_eq!(store.take(&migration, &a).unwrap(), None);
    incoming.finish().unwrap();
    assert_eq!(store.presence(&migration, &a), Presence::Ready);
    let mode = fs::metadata(store.folder(&migration)).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "memory is nobody else's business");
}

#[test]
fn a_checkpoint_comes_with_the_paths_that_it_refers_to() {
    let (_folder, store, migration, a) = store();
    let exact = ["/bin/app", "/data/\u{e4}\n"].map(str::to_owned).into();
    let links = [("/dev/fd".to_owned(), "/proc/self/fd".to_owned())].into();
    let paths = Paths { exact, followed: ["/run/x.sock".to_owned()].into(), links };
    let incoming = store.begin(&migration, &a).unwrap();
    incoming.write_paths(&Paths::default()).unwrap();
    incoming.write_paths(&paths).unwrap();
    incoming.finish().unwrap();
    let taken = store.take(&migration, &a).unwrap().unwrap();
    assert_eq!(taken.paths().unwrap(), paths);
    for text in [
        "",
        "{}",
        r#"{"exact":[]}"#,
        r#"{"exact":[],"followed":[]}"#,
        r#"{"exact":[1],"followed":[],"links":{}}"#,
    ] {
        fs::write(taken.work.join("paths.json"), text).unwrap();
        assert!(taken.paths().is_err(), "{text}");
    }
    fs::remove_file(taken.work.join("paths.json")).unwrap();
    assert!(taken.paths().is_err(), "without them nothing is restored");
}

#[test]
fn what_is_left_of_an_earlier_try_is_gone() {
    let (_folder, store, migration, a) = store();
    let incoming = store.begin(&migration, &a).unwrap();
    fs::write(incoming.images().join("left.img"), "half").unwrap();
    let incoming = store.begin(&migration, &a).unwrap();
    assert!(!incoming.images().join("left.img").exists());
}

#[test]
fn a_checkpoint_is_taken_once() {
    let (_folder, store, migration, a) = store();
    fill(&store, &migration, &a);
    let taken = store.take(&migration, &a).unwrap().unwrap();
    assert!(taken.images.join("core-1.img").exists() && taken.rootfs_diff.is_some());
    assert_eq!(store.presence(&migration, &a), Presence::Used);
    assert_eq!(store.take(&migration, &a).unwrap(), None);
    let again = store.begin(&migration, &a).unwrap().finish();
    assert!(matches!(again, Err(StoreError::Exists { .. })), "nor does another one take its place");
}

#[test]
fn a_checkpoint_is_claimed_only_by_the_pod_that_it_is_for() {
    let (_folder, store, migration, a) = store();
    let pod = |uid| Name::new("UID of a pod", uid).unwrap();
    fill(&store, &migration, &a);
    assert!(matches!(store.claim(&migration, &a, &pod("uid-1")), Err(StoreError::Owner { .. })));
    for uid in ["uid-1", "uid-2"] {
        store.assign(&migration, &pod(uid)).unwrap();
        assert_eq!(store.owner(&migration).unwrap().as_deref(), Some(uid));
    }
    let error = store.claim(&migration, &a, &pod("uid-1")).unwrap_err();
    assert!(error.to_string().contains("UID uid-2") && error.to_string().contains("UID uid-1"), "{error}");
    assert_eq!(store.presence(&migration, &a), Presence::Ready);
    assert!(store.claim(&migration, &a, &pod("uid-2")).unwrap().is_some());
}

#[test]
fn what_says_that_a_pod_is_live_stays_when_its_checkpoints_go() {
    let (_folder, store, migration, a) = store();
    store.remove_checkpoints(&migration).unwrap();
    assert!(!store.has_checkpoints(&migration).unwrap());
    fill(&store, &migration, &a);
    store.begin(&migration, &Name::new("container", "b").unwrap()).unwrap();
    store.assign(&migration, &Name::new("UID of a pod", "uid-1").unwrap()).unwrap();
    for mark in [Mark::Frozen, Mark::Live, Mark::Cancel] {
        store.mark(&migration, mark).unwrap();
    }
    assert!(store.has_checkpoints(&migration).unwrap());
    store.remove_checkpoints(&migration).unwrap();
    assert!(!store.has_checkpoints(&migration).unwrap());
    assert!(store.has(&migration, Mark::Live) && !store.has(&migration, Mark::Cancel));
    assert_eq!(store.owner(&migration).unwrap().as_deref(), Some("uid-1"));
}

#[test]
fn of_many_that_take_one_gets_it() {
    let (_folder, store, migration, a) = store();
    fill(&store, &migration, &a);
    let take = || store.take(&migration, &a).unwrap().is_some();
    let taken = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
        all.into_iter().filter_map(|thread| thread.join().ok()).filter(|taken| *taken).count()
    });
    assert_eq!(taken, 1);
}

#[test]
fn a_checkpoint_is_put_back_only_before_the_commit() {
    let (_folder, store, migration, a) = store();
    fill(&store, &migration, &a);
    store.take(&migration, &a).unwrap().unwrap();
    store.put_back(&migration, &a).unwrap();
    store.put_back(&migration, &a).unwrap();
    assert!(store.take(&migration, &a).unwrap().is_some());
    store.mark(&migration, Mark::Live).unwrap();
    assert!(matches!(store.put_back(&migration, &a), Err(StoreError::Live { .. })));
}

#[test]
fn a_live_pod_never_goes_back_to_a_checkpoint() {
    let (_folder, store, migration, a) = store();
    fill(&store, &migration, &a);
    store.mark(&migration, Mark::Live).unwrap();
    assert_eq!(store.take(&migration, &a).unwrap(), None);
}

#[test]
fn marks_are_set_and_taken_away() {
    let (_folder, store, migration, _a) = store();
    for mark in [Mark::Frozen, Mark::Live, Mark::Cancel] {
        assert!(!store.has(&migration, mark));
        store.mark(&migration, mark).unwrap();
        store.mark(&migration, mark).unwrap();
        assert!(store.has(&migration, mark));
        store.unmark(&migration, mark).unwrap();
        store.unmark(&migration, mark).unwrap();
        assert!(!store.has(&migration, mark));
    }
}

#[test]
fn a_container_is_not_taken_for_a_mark() {
    let (_folder, store, migration, _a) = store();
    for name in ["live", "cancel", "frozen", "pod", "incoming"] {
        fill(&store, &migration, &Name::new("container", name).unwrap());
    }
    for mark in [Mark::Frozen, Mark::Live, Mark::Cancel] {
        assert!(!store.has(&migration, mark));
    }
}

#[test]
fn a_checkpoint_that_does_not_fit_is_refused() {
    let (_folder, store, ..) = store();
    store.check_room(1, 0).unwrap();
    for (bytes, stays_free) in [(u64::MAX, 0), (u64::MAX, u64::MAX), (1, u64::MAX - 1)] {
        let error = store.check_room(bytes, stays_free).unwrap_err();
        assert!(error.to_string().contains("limits.maxCheckpointSize"), "{error}");
    }
}

#[test]
fn nothing_is_left_behind() {
    let (folder, store, migration, a) = store();
    let b = Name::new("container", "b").unwrap();
    fill(&store, &migration, &a);
    store.begin(&migration, &b).unwrap();
    store.mark(&migration, Mark::Cancel).unwrap();
    let other = Name::new("migration", "move-2").unwrap();
    fill(&store, &other, &a);
    assert_eq!(store.migrations().unwrap(), [migration.clone(), other.clone()]);
    store.remove(&migration).unwrap();
    store.remove(&migration).unwrap();
    assert_eq!(store.migrations().unwrap(), std::slice::from_ref(&other));
    store.remove(&other).unwrap();
    assert_eq!(fs::read_dir(folder.path().join("restore")).unwrap().count(), 0);
}

#[test]
fn a_mount_of_a_restore_that_hangs_is_not_walked_into() {
    use nix::mount::{MntFlags, MsFlags, mount, umount2};
    let (_folder, store, migration, a) = store();
    fill(&store, &migration, &a);
    let yard = store.folder(&migration).join("a/.criu.cgyard");
    fs::create_dir(&yard).unwrap();
    if mount(Some("none"), &yard, Some("tmpfs"), MsFlags::empty(), None::<&str>).is_err() {
        eprintln!("not tried: this user may not mount");
        return;
    }
    let written = fs::write(yard.join("cgroup.procs"), "1").is_ok();
    let removed = store.remove(&migration);
    let stays = yard.join("cgroup.procs").exists();
    umount2(&yard, MntFlags::MNT_DETACH).unwrap();
    assert!(written && stays);
    let error = removed.unwrap_err();
    assert!(matches!(error, StoreError::Remove(RemoveError::Mounted { .. })), "{error}");
    store.remove(&migration).unwrap();
}
