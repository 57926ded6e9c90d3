//! Streams that nobody should have sent.

use super::{ArchiveError, Kind, Limits, Refusal, compressed, decompressed, unpack};
use sha2::{Digest, Sha256};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

/// A stream of entries as they are given, whether a builder would make them or not.
#[derive(Default)]
pub(super) struct Hostile(Vec<u8>);

impl Hostile {
    pub(super) fn header(path: &[u8], kind: EntryType, size: u64) -> Header {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..path.len()].copy_from_slice(path);
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_uid(u64::from(nix::unistd::geteuid().as_raw()));
        header.set_gid(u64::from(nix::unistd::getegid().as_raw()));
        header.set_mtime(1);
        header.set_size(size);
        header
    }

    pub(super) fn raw(mut self, mut header: Header, data: &[u8]) -> Self {
        header.set_cksum();
        self.0.extend_from_slice(header.as_bytes());
        self.0.extend_from_slice(data);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub(super) fn entry(self, path: &str, kind: EntryType, data: &[u8]) -> Self {
        self.raw(Self::header(path.as_bytes(), kind, data.len() as u64), data)
    }

    pub(super) fn file(self, path: &str) -> Self {
        self.entry(path, EntryType::Regular, b"evil")
    }

    pub(super) fn link(self, path: &str, kind: EntryType, target: &str) -> Self {
        let mut header = Self::header(path.as_bytes(), kind, 0);
        header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
        self.raw(header, b"")
    }

    /// The whole stream, with its end.
    pub(super) fn stream(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }

    fn unpack(self, kind: Kind, to: &Path, limits: &Limits) -> Result<(), ArchiveError> {
        let stream = self.stream();
        let sum: String = Sha256::digest(&stream).iter().map(|byte| format!("{byte:02x}")).collect();
        unpack(kind, stream.as_slice(), to, limits, Some(&sum)).map(|_| ())
    }

    fn refusal(self, kind: Kind) -> Refusal {
        let (outer, to) = target();
        let result = self.unpack(kind, &to, &Limits::default());
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 1, "something was written outside");
        match result {
            Err(ArchiveError::Refused { refusal, .. }) => refusal,
            other => unreachable!("it is not refused: {other:?}"),
        }
    }
}

fn target() -> (TempDir, std::path::PathBuf) {
    let outer = tempfile::tempdir().unwrap();
    let to = outer.path().join("to");
    fs::create_dir(&to).unwrap();
    (outer, to)
}

const ALL: [Kind; 3] = [Kind::Images, Kind::Volume, Kind::RootfsDiff];
const TREES: [Kind; 2] = [Kind::Volume, Kind::RootfsDiff];

#[test]
fn absolute_paths_are_refused() {
    for kind in ALL {
        assert_eq!(Hostile::default().file("/etc/passwd").refusal(kind), Refusal::Absolute);
    }
}

#[test]
fn paths_that_lead_up_are_refused() {
    for kind in ALL {
        for path in ["../evil", "a/../../evil", "..", "a/.."] {
            assert_eq!(Hostile::default().file(path).refusal(kind), Refusal::ParentFolder, "{path}");
        }
    }
}

#[test]
fn a_long_name_that_leads_up_is_refused() {
    let long = format!("{}../../evil", "a/".repeat(60));
    let stream = Hostile::default().entry("././@LongLink", EntryType::GNULongName, long.as_bytes()).file("x");
    assert_eq!(stream.refusal(Kind::Volume), Refusal::ParentFolder);
}

#[test]
fn symbolic_links_out_of_the_folder_are_refused() {
    for target in ["..", "../../etc", "a/../../b"] {
        for kind in TREES {
            let stream = Hostile::default().link("l", EntryType::Symlink, target);
            assert!(matches!(stream.refusal(kind), Refusal::LinkOutside(_)), "{target}");
        }
    }
    let absolute = Hostile::default().link("l", EntryType::Symlink, "/etc/passwd");
    assert!(matches!(absolute.refusal(Kind::Volume), Refusal::LinkOutside(_)));
}

#[test]
fn hard_links_out_of_the_folder_are_refused() {
    for target in ["/etc/passwd", "../evil", "a/../../evil", "nowhere/file"] {
        for kind in TREES {
            let stream = Hostile::default().link("l", EntryType::Link, target);
            assert!(matches!(stream.refusal(kind), Refusal::LinkOutside(_)), "{target}");
        }
    }
}

#[test]
fn nothing_is_written_through_a_symbolic_link() {
    for kind in TREES {
        let stream = Hostile::default()
            .entry("d", EntryType::Directory, b"")
            .link("l", EntryType::Symlink, "d")
            .file("l/evil");
        assert_eq!(stream.refusal(kind), Refusal::Folder);
    }
}

#[test]
fn a_link_that_was_in_the_image_leads_nowhere_either() {
    let (outer, to) = target();
    let outside = outer.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "kept").unwrap();
    symlink(&outside, to.join("l")).unwrap();
    for stream in [
        Hostile::default().file("l/evil"),
        Hostile::default().file("l/.wh.kept"),
        Hostile::default().file("l/.wh..wh..opq"),
        Hostile::default().link("stolen", EntryType::Link, "l/kept"),
    ] {
        assert!(stream.unpack(Kind::RootfsDiff, &to, &Limits::default()).is_err());
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert!(!to.join("stolen").exists());
}

#[test]
fn whiteouts_do_not_lead_up() {
    for path in [".wh..", ".wh...", ".wh.", "d/.wh..."] {
        let stream = Hostile::default().entry("d", EntryType::Directory, b"").file(path);
        let refusal = stream.refusal(Kind::RootfsDiff);
        assert!(matches!(refusal, Refusal::ParentFolder | Refusal::NoPath), "{path} {refusal:?}");
    }
}

#[test]
fn devices_that_are_no_whiteouts_are_refused() {
    for kind in ALL {
        for (device, major, minor) in [
            (EntryType::Char, 1, 3),
            (EntryType::Block, 8, 0),
            (EntryType::Block, 0, 0),
            (EntryType::Char, 0, 1),
        ] {
            let mut header = Hostile::header(b"sda", device, 0);
            header.set_device_major(major).unwrap();
            header.set_device_minor(minor).unwrap();
            assert_eq!(Hostile::default().raw(header, b"").refusal(kind), Refusal::Device);
        }
    }
}

#[test]
fn a_whiteout_as_a_device_deletes_and_is_no_device() {
    let (_outer, to) = target();
    fs::write(to.join("wget"), "").unwrap();
    let mut header = Hostile::header(b"wget", EntryType::Char, 0);
    header.set_device_major(0).unwrap();
    header.set_device_minor(0).unwrap();
    Hostile::default().raw(header.clone(), b"").unpack(Kind::RootfsDiff, &to, &Limits::default()).unwrap();
    assert_eq!(fs::read_dir(&to).unwrap().count(), 0);
    assert_eq!(Hostile::default().raw(header, b"").refusal(Kind::Volume), Refusal::Device);
}

#[test]
fn oversized_entries_are_refused_before_they_are_read() {
    let header = Hostile::header(b"pages-1.img", EntryType::Regular, 1 << 60);
    let refusal = Hostile::default().raw(header, b"").refusal(Kind::Images);
    assert_eq!(refusal, Refusal::EntryTooLarge { bytes: 1 << 60, limit: 8 << 30 });
}

#[test]
fn many_files_that_are_too_large_together_are_refused() {
    let (_outer, to) = target();
    let limits = Limits { total_bytes: 10, entry_bytes: 8, ..Limits::default() };
    let stream = Hostile::default().file("a").file("b").file("c");
    let error = stream.unpack(Kind::Volume, &to, &limits).unwrap_err();
    let refused = matches!(
        error,
        ArchiveError::Refused { refusal: Refusal::TooManyBytes { bytes: 12, limit: 10 }, .. }
    );
    assert!(refused && !to.join("c").exists());
}

#[test]
fn too_many_entries_are_refused() {
    let (_outer, to) = target();
    let limits = Limits { entries: 3, ..Limits::default() };
    let stream = (0..5).fold(Hostile::default(), |stream, index| stream.file(&index.to_string()));
    let error = stream.unpack(Kind::Volume, &to, &limits).unwrap_err();
    assert!(matches!(error, ArchiveError::Refused { refusal: Refusal::TooManyEntries(3), .. }), "{error}");
}

#[test]
fn a_compressed_bomb_does_not_go_off() {
    let (_outer, to) = target();
    let limits = Limits { total_bytes: 1 << 20, entry_bytes: 1 << 20, entries: 10, allow_setid: false };
    // Small as it is, it holds half a gigabyte of zeros: first as what follows the last entry, then as a file.
    for header in [None, Some(Hostile::header(b"x", EntryType::Regular, 1 << 20))] {
        let mut bomb = Vec::new();
        compressed(&mut bomb, |to| {
            if let Some(mut header) = header.clone() {
                header.set_cksum();
                to.write_all(header.as_bytes()).map_err(ArchiveError::Stream)?;
            }
            let zeros = vec![0; 1 << 20];
            (0..512).try_for_each(|_| to.write_all(&zeros)).map_err(ArchiveError::Stream)
        })
        .unwrap();
        assert!(bomb.len() < 100_000);
        let stream = decompressed(bomb.as_slice()).unwrap();
        let error = unpack(Kind::Volume, stream, &to, &limits, Some("")).unwrap_err();
        assert!(matches!(error, ArchiveError::TooLong { .. }), "{error}");
    }
}

#[test]
fn a_name_of_a_gigabyte_is_refused() {
    let (_outer, to) = target();
    let header = Hostile::header(b"././@LongLink", EntryType::GNULongName, 1 << 30);
    let mut stream = Hostile::default().raw(header, b"");
    stream.0.resize(stream.0.len() + 100_000, b'a');
    let error = stream.unpack(Kind::Volume, &to, &Limits::default()).unwrap_err();
    assert!(matches!(error, ArchiveError::Refused { refusal: Refusal::PathTooLong(4095), .. }), "{error}");
}

#[test]
fn folders_without_end_are_refused() {
    let deep = "d/".repeat(200);
    let stream = Hostile::default().entry("././@LongLink", EntryType::GNULongName, deep.as_bytes()).file("x");
    assert_eq!(stream.refusal(Kind::Volume), Refusal::TooDeep(128));
}

#[test]
fn files_that_give_rights_are_refused() {
    for mode in [0o4755, 0o2755, 0o6755] {
        for kind in TREES {
            let mut header = Hostile::header(b"su", EntryType::Regular, 0);
            header.set_mode(mode);
            assert_eq!(Hostile::default().raw(header, b"").refusal(kind), Refusal::SetId);
        }
    }
}

#[test]
fn images_are_plain_files_in_one_folder() {
    for kind in [EntryType::Directory, EntryType::Symlink, EntryType::Link, EntryType::Fifo] {
        let refusal = Hostile::default().link("core-1.img", kind, "x").refusal(Kind::Images);
        assert!(matches!(refusal, Refusal::Type(_)), "{refusal:?}");
    }
    assert_eq!(Hostile::default().file("a/core-1.img").refusal(Kind::Images), Refusal::Folder);
}

#[test]
fn extensions_and_sparse_files_are_refused() {
    for kind in [EntryType::XHeader, EntryType::XGlobalHeader, EntryType::GNUSparse, EntryType::Continuous] {
        let refusal = Hostile::default().entry("x", kind, b"").refusal(Kind::Volume);
        assert!(matches!(refusal, Refusal::Type(_)), "{refusal:?}");
    }
}

#[test]
fn an_owner_that_would_be_left_as_it_is_is_refused() {
    for owner in [u64::from(u32::MAX), 1 << 40] {
        let mut header = Hostile::header(b"x", EntryType::Regular, 0);
        header.set_uid(owner);
        assert_eq!(Hostile::default().raw(header, b"").refusal(Kind::Volume), Refusal::Owner(owner));
    }
}

#[test]
fn nothing_is_there_twice() {
    for kind in [Kind::Images, Kind::Volume] {
        assert_eq!(Hostile::default().file("x").file("x").refusal(kind), Refusal::Twice);
    }
}

#[test]
fn a_stream_with_another_sum_is_refused() {
    let (_outer, to) = target();
    let mut builder = Builder::new(Vec::new());
    builder.append_data(&mut Hostile::header(b"", EntryType::Regular, 0), "x", std::io::empty()).unwrap();
    let stream = builder.into_inner().unwrap();
    let error =
        unpack(Kind::Images, stream.as_slice(), &to, &Limits::default(), Some(&"0".repeat(64))).unwrap_err();
    assert!(matches!(error, ArchiveError::Sum { .. }), "{error}");
}

#[test]
fn a_stream_that_is_cut_off_is_refused() {
    let (_outer, to) = target();
    let header = Hostile::header(b"x", EntryType::Regular, 5_000);
    let mut stream = Hostile::default().raw(header, b"only this");
    stream.0.truncate(600);
    let error = unpack(Kind::Images, stream.0.as_slice(), &to, &Limits::default(), Some("")).unwrap_err();
    assert!(!matches!(error, ArchiveError::Refused { .. }), "{error}");
}
