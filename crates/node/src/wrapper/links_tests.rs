//! Containers with links in their root and in a volume.

use super::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// A bundle with a root and a volume at `/data`, and with links in both.
fn bundle(links: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for path in ["rootfs/dir", "rootfs/run", "rootfs/var", "rootfs/data", "volume/dir", "outside"] {
        fs::create_dir_all(folder.path().join(path)).unwrap();
    }
    for (at, target) in links {
        symlink(target, folder.path().join(at)).unwrap();
    }
    let source = folder.path().join("volume");
    let config = serde_json::json!({
        "root": { "path": "rootfs" },
        "mounts": [
            { "destination": "/proc", "type": "proc", "source": "proc" },
            { "destination": "/dev", "type": "tmpfs", "source": "tmpfs" },
            { "destination": "/data", "type": "bind", "source": source, "options": ["rbind", "rw"] },
        ],
    });
    fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    folder
}

fn checked(links: &[(&str, &str)], exact: &[&str], followed: &[&str]) -> Result<(), String> {
    let folder = bundle(links);
    let set = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<BTreeSet<_>>();
    let paths = Paths { exact: set(exact), followed: set(followed), links: BTreeMap::new() };
    check(&Bundle::read(folder.path()).unwrap(), &paths).map_err(|error| error.to_string())
}

#[test]
fn paths_without_links_are_as_they_say() {
    let paths = ["/", "/dir", "/dir/new", "/data", "/data/dir/x", "/data/new", "/proc/1/status", "/dev/null"];
    assert_eq!(checked(&[], &paths, &["/run/x.sock", "/data/x.sock", "/none/x.sock"]), Ok(()));
}

#[test]
fn files_and_mounts_do_not_lead_through_links() {
    for (link, target, path) in [
        ("rootfs/l", "/proc/self/fd/1000", "/l/etc/shadow"),
        ("rootfs/l", "../../../../outside", "/l/file"),
        ("rootfs/l", "/dir", "/l/file"),
        ("rootfs/l", "/dir", "/l"),
        ("rootfs/dir/l", "/etc", "/dir/l"),
        ("volume/l", "/proc/self/fd/1000", "/data/l/etc/shadow"),
        ("volume/dir/l", "x", "/data/dir/l"),
    ] {
        let error = checked(&[(link, target)], &["/dir", path], &[]).unwrap_err();
        assert!(error.contains(path) && error.contains("link"), "{error}");
    }
}

#[test]
fn sockets_lead_through_links_of_the_container_only() {
    for (links, path) in [
        (&[("rootfs/var/run", "/run")][..], "/var/run/x.sock"),
        (&[("rootfs/var/run", "../run")][..], "/var/run/x.sock"),
        (&[("rootfs/l", "/data/m"), ("volume/m", "/run")][..], "/l/x.sock"),
        // Above the root is the root.
        (&[("rootfs/l", "../../../../outside")][..], "/l/x.sock"),
    ] {
        assert_eq!(checked(links, &[], &[path]), Ok(()), "{path}");
    }
    for (links, path) in [
        (&[("rootfs/l", "/proc/self/fd/7")][..], "/l/x.sock"),
        (&[("rootfs/l", "../../proc/self/root")][..], "/l/x.sock"),
        (&[("rootfs/l", "/data/m"), ("volume/m", "/proc/1/cwd")][..], "/l/x.sock"),
        (&[("volume/l", "/dev/fd/7")][..], "/data/l/x.sock"),
        (&[("rootfs/l", "/m"), ("rootfs/m", "/l")][..], "/l/x.sock"),
    ] {
        let error = checked(links, &[], &[path]).unwrap_err();
        assert!(error.contains(path), "{error}");
    }
}

#[test]
fn a_mount_is_where_the_links_of_the_root_lead() {
    // The volume is mounted at /run/v: what is below it is looked up in the volume.
    let folder = bundle(&[("rootfs/var/run", "/run"), ("volume/l", "/proc/self/fd/7")]);
    let config = serde_json::json!({
        "root": { "path": "rootfs" },
        "mounts": [
            { "destination": "/var/run/v", "type": "bind", "source": folder.path().join("volume"), "options": ["bind"] },
        ],
    });
    fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    let bundle = Bundle::read(folder.path()).unwrap();
    let paths = |path: &str| Paths { exact: BTreeSet::from([path.to_owned()]), ..Paths::default() };
    check(&bundle, &paths("/run/v/dir")).unwrap();
    assert!(check(&bundle, &paths("/run/v/l/x")).is_err());
    assert!(check(&bundle, &paths("/var/run/v")).is_err(), "the kernel does not call it so");
}

#[test]
fn links_in_file_systems_that_are_new_count_too() {
    let folder = bundle(&[("rootfs/l", "/dev/m")]);
    let bundle = Bundle::read(folder.path()).unwrap();
    let links = |target: &str| BTreeMap::from([("/dev/m".to_owned(), target.to_owned())]);
    let one = |path: &str| BTreeSet::from([path.to_owned()]);
    let exact =
        Paths { exact: one("/dev/m/etc/shadow"), links: links("/proc/self/fd/7"), ..Paths::default() };
    assert!(check(&bundle, &exact).is_err());
    for (target, leads_out) in [("/proc/self/fd/7", true), ("../run", false)] {
        let socket = Paths { followed: one("/l/x.sock"), links: links(target), ..Paths::default() };
        assert_eq!(check(&bundle, &socket).is_err(), leads_out, "{target}");
    }
}
