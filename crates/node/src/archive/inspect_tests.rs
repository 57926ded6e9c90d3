//! Streams that are judged before anybody unpacks them.

use super::hostile_tests::Hostile;
use super::{ArchiveError, Device, Kind, Limits, Memory, Refusal, inspect, inspect_memory, pack};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use tar::{EntryType, Header};

fn device(kind: EntryType, major: u32, minor: u32) -> Header {
    let mut header = Hostile::header(b"x", kind, 0);
    header.set_device_major(major).unwrap();
    header.set_device_minor(minor).unwrap();
    header
}

fn with_mode(path: &str, mode: u32) -> Hostile {
    let mut header = Hostile::header(path.as_bytes(), EntryType::Regular, 0);
    header.set_mode(mode);
    Hostile::default().raw(header, b"")
}

/// Streams that must be refused, whatever they are of.
fn hostile() -> Vec<Hostile> {
    let one = Hostile::default;
    vec![
        one().file("/etc/passwd"),
        one().file("../evil"),
        one().file("a/../../evil"),
        one().link("l", EntryType::Symlink, "../../etc"),
        one().link("l", EntryType::Link, "/etc/passwd"),
        one().link("l", EntryType::Link, "../x"),
        one().raw(device(EntryType::Block, 8, 0), b""),
        one().raw(device(EntryType::Char, 1, 1), b""),
        one().entry("x", EntryType::XHeader, b""),
        one().entry("x", EntryType::GNUSparse, b""),
        with_mode("su", 0o4755),
        with_mode("su", 0o2755),
        one().raw(Hostile::header(b"x", EntryType::Regular, 1 << 60), b""),
    ]
}

fn compressed(stream: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(stream).unwrap();
    encoder.finish().unwrap()
}

fn in_memory(stream: Hostile, at: &str, devices: &[Device]) -> Result<Memory, ArchiveError> {
    let devices: BTreeSet<Device> = devices.iter().copied().collect();
    inspect_memory(compressed(&stream.stream()).as_slice(), at, &devices, &Limits::default())
}

#[test]
fn what_a_container_changed_is_judged_as_when_it_is_unpacked() {
    for (number, stream) in hostile().into_iter().enumerate() {
        let judged = inspect(Kind::RootfsDiff, stream.stream().as_slice(), &Limits::default());
        assert!(matches!(judged, Err(ArchiveError::Refused { .. })), "{number} {judged:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("etc")).unwrap();
    fs::write(folder.path().join("etc/conf"), "text").unwrap();
    std::os::unix::fs::symlink("/etc/conf", folder.path().join("link")).unwrap();
    let mut stream = Vec::new();
    let packed = pack(Kind::RootfsDiff, folder.path(), &mut stream, &Limits::default()).unwrap();
    assert_eq!(inspect(Kind::RootfsDiff, stream.as_slice(), &Limits::default()).unwrap(), packed);
    let whiteouts = Hostile::default().file("etc/.wh.conf").file("etc/.wh..wh..opq");
    inspect(Kind::RootfsDiff, whiteouts.stream().as_slice(), &Limits::default()).unwrap();
}

#[test]
fn archives_of_memory_are_judged_too() {
    for (number, stream) in hostile().into_iter().enumerate() {
        let judged = in_memory(stream, "/dev", &[]);
        assert!(matches!(judged, Err(ArchiveError::Refused { .. })), "{number} {judged:?}");
    }
    for garbage in [&b""[..], b"no archive", &[0; 64]] {
        let judged = inspect_memory(garbage, "/dev", &BTreeSet::new(), &Limits::default());
        assert!(matches!(judged, Err(ArchiveError::Stream(_))), "{judged:?}");
    }
}

#[test]
fn only_devices_of_the_container_are_in_its_memory() {
    let null = Device { block: false, major: 1, minor: 3 };
    let stream = |kind, major, minor| Hostile::default().raw(device(kind, major, minor), b"");
    in_memory(stream(EntryType::Char, 1, 3), "/dev", &[null]).unwrap();
    for (kind, major, minor) in [(EntryType::Char, 1, 1), (EntryType::Block, 1, 3), (EntryType::Char, 0, 0)] {
        let Err(ArchiveError::Refused { refusal, .. }) =
            in_memory(stream(kind, major, minor), "/dev", &[null])
        else {
            panic!("{major}:{minor} is not refused");
        };
        assert_eq!(refusal, Refusal::DeviceNumber { major, minor });
    }
}

#[test]
fn links_in_memory_are_told_with_their_targets() {
    let stream = Hostile::default()
        .entry("./", EntryType::Directory, b"")
        .link("./fd", EntryType::Symlink, "/proc/self/fd")
        .entry("./shm/", EntryType::Directory, b"")
        .link("./shm/l", EntryType::Symlink, "../../tmp")
        .file("./shm/file");
    let memory = in_memory(stream, "/dev", &[]).unwrap();
    let links = [("/fd", "/proc/self/fd"), ("/shm/l", "../../tmp")];
    let links: BTreeMap<_, _> = links.map(|(path, to)| (path.to_owned(), to.to_owned())).into();
    assert_eq!(memory, Memory { bytes: 4, links });
    let many = (0..=10_000)
        .fold(Hostile::default(), |stream, index| stream.link(&index.to_string(), EntryType::Symlink, "x"));
    let Err(ArchiveError::Refused { refusal, .. }) = in_memory(many, "/dev", &[]) else {
        panic!("so many links are not refused");
    };
    assert_eq!(refusal, Refusal::TooManyLinks(10_000));
}

#[test]
fn memory_that_is_too_large_once_it_is_unpacked_is_refused() {
    let limits = Limits { total_bytes: 1 << 20, entry_bytes: 1 << 20, entries: 10, allow_setid: false };
    let mut bomb = Hostile::header(b"x", EntryType::Regular, 1 << 20);
    bomb.set_cksum();
    let mut stream = bomb.as_bytes().to_vec();
    stream.resize(64 << 20, 0);
    let judged = inspect_memory(compressed(&stream).as_slice(), "/dev", &BTreeSet::new(), &limits);
    assert!(matches!(judged, Err(ArchiveError::TooLong { .. })), "{judged:?}");
    let two = Hostile::default().entry("a", EntryType::Regular, &[0; 800_000]);
    let two = two.entry("b", EntryType::Regular, &[0; 800_000]);
    let judged = inspect_memory(compressed(&two.stream()).as_slice(), "/dev", &BTreeSet::new(), &limits);
    let Err(ArchiveError::Refused { refusal, .. }) = judged else { panic!("{judged:?}") };
    assert_eq!(refusal, Refusal::TooManyBytes { bytes: 1_600_000, limit: 1 << 20 });
}
