//! What is packed is what is unpacked.

use super::{ArchiveError, Kind, Limits, Refusal, compressed, decompressed, pack, unpack};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn packed(kind: Kind, from: &Path) -> (Vec<u8>, String) {
    let mut stream = Vec::new();
    let summary = pack(kind, from, &mut stream, &Limits::default()).unwrap();
    (stream, summary.sha256)
}

fn moved(kind: Kind, from: &Path, to: &Path) {
    let (stream, sum) = packed(kind, from);
    unpack(kind, stream.as_slice(), to, &Limits::default(), Some(&sum)).unwrap();
}

#[test]
fn a_volume_comes_along_as_it_was() {
    let (from, to) = (folder(), folder());
    let long = format!("{}/{}/{}", "l".repeat(200), "m".repeat(200), "n".repeat(200));
    fs::create_dir_all(from.path().join("a/b")).unwrap();
    fs::create_dir_all(from.path().join(&long).parent().unwrap()).unwrap();
    fs::write(from.path().join(&long), "deep").unwrap();
    fs::write(from.path().join("a/b/file"), "text").unwrap();
    fs::write(from.path().join("empty"), "").unwrap();
    fs::write(from.path().join(".wh.not-a-whiteout"), "a file like any other").unwrap();
    fs::hard_link(from.path().join("a/b/file"), from.path().join("second")).unwrap();
    symlink("a/b/file", from.path().join("link")).unwrap();
    symlink(&long, from.path().join("long-link")).unwrap();
    nix::unistd::mkfifo(&from.path().join("pipe"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    fs::set_permissions(from.path().join("a/b/file"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::set_permissions(from.path().join("a"), fs::Permissions::from_mode(0o2770)).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(from.path().join("socket")).unwrap();
    moved(Kind::Volume, from.path(), to.path());
    drop(socket);
    let read = |name: &str| fs::read_to_string(to.path().join(name)).unwrap();
    assert_eq!(
        (read("a/b/file"), read("link"), read("second")),
        ("text".into(), "text".into(), "text".into())
    );
    assert_eq!(
        (read("empty"), read(&long), read("long-link")),
        (String::new(), "deep".into(), "deep".into())
    );
    assert_eq!(read(".wh.not-a-whiteout"), "a file like any other");
    let stat = |root: &Path, name: &str| fs::symlink_metadata(root.join(name)).unwrap();
    for name in ["a", "a/b", "a/b/file", "empty", "pipe"] {
        let (was, is) = (stat(from.path(), name), stat(to.path(), name));
        assert_eq!((was.mode(), was.uid(), was.gid()), (is.mode(), is.uid(), is.gid()), "{name}");
    }
    assert_eq!(stat(from.path(), "empty").mtime(), stat(to.path(), "empty").mtime());
    assert_eq!(stat(to.path(), "second").ino(), stat(to.path(), "a/b/file").ino());
    assert!(!to.path().join("socket").exists());
}

#[test]
fn the_same_folder_gives_the_same_stream() {
    let from = folder();
    for name in ["b", "a", "c"] {
        fs::write(from.path().join(name), name).unwrap();
    }
    assert_eq!(packed(Kind::Images, from.path()), packed(Kind::Images, from.path()));
}

#[test]
fn what_the_container_deleted_is_deleted_at_the_other_end() {
    let (upper, rootfs) = (folder(), folder());
    fs::create_dir_all(upper.path().join("etc")).unwrap();
    fs::write(upper.path().join("etc/new"), "new").unwrap();
    let whiteout = nix::sys::stat::mknod(
        &upper.path().join("etc/wget"),
        nix::sys::stat::SFlag::S_IFCHR,
        nix::sys::stat::Mode::empty(),
        0,
    );
    if whiteout.is_err() {
        eprintln!("not tried: this user may not make devices");
        return;
    }
    fs::create_dir_all(rootfs.path().join("etc/folder")).unwrap();
    fs::write(rootfs.path().join("etc/wget"), "old").unwrap();
    fs::write(rootfs.path().join("etc/stays"), "stays").unwrap();
    moved(Kind::RootfsDiff, upper.path(), rootfs.path());
    assert!(!rootfs.path().join("etc/wget").exists() && !rootfs.path().join("etc/.wh.wget").exists());
    assert!(rootfs.path().join("etc/stays").exists() && rootfs.path().join("etc/new").exists());
}

#[test]
fn a_folder_that_hides_what_was_there_hides_it_at_the_other_end() {
    let (upper, rootfs) = (folder(), folder());
    let hiding = upper.path().join("var");
    fs::create_dir(&hiding).unwrap();
    fs::write(hiding.join("new"), "new").unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(&hiding, "trusted.overlay.opaque", b"y", flags).is_err() {
        eprintln!("not tried: this user or file system has no trusted attributes");
        return;
    }
    fs::create_dir_all(rootfs.path().join("var/old")).unwrap();
    moved(Kind::RootfsDiff, upper.path(), rootfs.path());
    assert!(rootfs.path().join("var/new").exists() && !rootfs.path().join("var/old").exists());
    rustix::fs::setxattr(&hiding, "trusted.overlay.redirect", b"/other", flags).unwrap();
    let packed = pack(Kind::RootfsDiff, upper.path(), Vec::new(), &Limits::default());
    assert!(matches!(packed, Err(ArchiveError::Refused { refusal: Refusal::Redirected(_), .. })));
}

#[test]
fn what_the_container_replaced_is_replaced_and_not_written_through() {
    let (upper, rootfs, outside) = (folder(), folder(), folder());
    fs::write(upper.path().join("link"), "a file now").unwrap();
    fs::create_dir(upper.path().join("was-a-file")).unwrap();
    fs::write(upper.path().join("was-a-folder"), "a file now").unwrap();
    let target = outside.path().join("target");
    fs::write(&target, "untouched").unwrap();
    symlink(&target, rootfs.path().join("link")).unwrap();
    fs::write(rootfs.path().join("was-a-file"), "").unwrap();
    fs::create_dir_all(rootfs.path().join("was-a-folder/x")).unwrap();
    moved(Kind::RootfsDiff, upper.path(), rootfs.path());
    assert_eq!(fs::read_to_string(target).unwrap(), "untouched");
    assert_eq!(fs::read_to_string(rootfs.path().join("link")).unwrap(), "a file now");
    assert!(rootfs.path().join("was-a-file").is_dir() && rootfs.path().join("was-a-folder").is_file());
}

#[test]
fn a_stream_is_compressed_and_back() {
    let (from, to) = (folder(), folder());
    fs::write(from.path().join("pages-1.img"), vec![0; 3 << 20]).unwrap();
    let mut stream = Vec::new();
    let limits = Limits::default();
    let summary = compressed(&mut stream, |to| pack(Kind::Images, from.path(), to, &limits)).unwrap();
    assert!(stream.len() < 10_000 && summary.bytes == 3 << 20, "{} {summary:?}", stream.len());
    let back = decompressed(stream.as_slice()).unwrap();
    assert_eq!(unpack(Kind::Images, back, to.path(), &limits, Some(&summary.sha256)).unwrap(), summary);
    let mode = fs::metadata(to.path().join("pages-1.img")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o600, "memory is nobody else's business");
}

#[test]
fn no_bytes_make_it_panic_or_write_elsewhere() {
    let mut seed = 1_u64;
    // A generator of numbers that is good enough to damage streams with.
    let mut draw = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap_or(0) % below
    };
    let from = folder();
    fs::create_dir(from.path().join("d")).unwrap();
    fs::write(from.path().join("d/f"), "f").unwrap();
    symlink("d/f", from.path().join("l")).unwrap();
    let (whole, _) = packed(Kind::Volume, from.path());
    for round in 0..600 {
        let mut stream = whole.clone();
        if round % 4 == 0 {
            stream = (0..draw(3_000)).map(|_| u8::try_from(draw(256)).unwrap_or(0)).collect();
        }
        for _ in 0..draw(8) {
            // Mostly where the headers say something.
            let at = draw(stream.len().max(1)) / 512 * 512 + draw(512);
            if let Some(byte) = stream.get_mut(at) {
                *byte = u8::try_from(draw(256)).unwrap_or(0);
            }
        }
        let outer = folder();
        let to = outer.path().join("to");
        for kind in [Kind::Volume, Kind::Images, Kind::RootfsDiff] {
            fs::create_dir_all(&to).unwrap();
            let _ = unpack(kind, stream.as_slice(), &to, &Limits::default(), Some(""));
        }
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 1, "round {round}");
    }
}
