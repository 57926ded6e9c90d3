//! An archive that has the same bytes whoever packs it: sorted, owned by root, all of one time.

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Files that become a `.tar.gz`.
pub(crate) struct Archive {
    time: u64,
    entries: BTreeMap<String, Entry>,
}

enum Entry {
    File { mode: u32, path: PathBuf },
    Text { text: String },
    Link { to: String },
}

impl Archive {
    /// An empty archive whose entries all have this time, in seconds since 1970.
    pub(crate) fn new(time: u64) -> Self {
        Self { time, entries: BTreeMap::new() }
    }

    /// Adds a program.
    #[must_use]
    pub(crate) fn program(self, name: &str, path: &Path) -> Self {
        self.entry(name, Entry::File { mode: 0o755, path: path.to_path_buf() })
    }

    /// Adds a file.
    #[must_use]
    pub(crate) fn file(self, name: &str, path: &Path) -> Self {
        self.entry(name, Entry::File { mode: 0o644, path: path.to_path_buf() })
    }

    /// Adds a file with this text.
    #[must_use]
    pub(crate) fn text(self, name: &str, text: String) -> Self {
        self.entry(name, Entry::Text { text })
    }

    /// Adds a symbolic link.
    #[must_use]
    pub(crate) fn link(self, name: &str, to: &str) -> Self {
        self.entry(name, Entry::Link { to: to.to_owned() })
    }

    /// Writes the archive.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        self.pack(path).with_context(|| format!("cannot write {}", path.display()))
    }

    fn entry(mut self, name: &str, entry: Entry) -> Self {
        self.entries.insert(name.to_owned(), entry);
        self
    }

    fn pack(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        // The header of gzip names neither a file, a time nor a system.
        let file = BufWriter::new(File::create(path)?);
        let packed = GzBuilder::new().mtime(0).operating_system(255).write(file, Compression::best());
        let mut archive = tar::Builder::new(packed);
        for (name, entry) in &self.entries {
            match entry {
                Entry::File { mode, path } => {
                    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
                    let mut header = self.header(tar::EntryType::Regular, *mode, file.metadata()?.len());
                    archive.append_data(&mut header, name, file)?;
                }
                Entry::Text { text } => {
                    let mut header = self.header(tar::EntryType::Regular, 0o644, text.len() as u64);
                    archive.append_data(&mut header, name, text.as_bytes())?;
                }
                Entry::Link { to } => {
                    let mut header = self.header(tar::EntryType::Symlink, 0o777, 0);
                    archive.append_link(&mut header, name, to)?;
                }
            }
        }
        let mut file = archive.into_inner().and_then(flate2::write::GzEncoder::finish)?;
        Ok(file.flush()?)
    }

    fn header(&self, kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(self.time);
        header.set_size(size);
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::time::{Duration, SystemTime};

    fn example(folder: &Path) -> Archive {
        let program = folder.join("program");
        Archive::new(1_700_000_000)
            .text("p/share/text", "hello".to_owned())
            .link("p/kubectl-portolan", "portolan")
            .program("p/portolan", &program)
    }

    /// Writes the example from files in a new folder with this mode and time.
    fn written(age: u64) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        fs::write(&program, "ELF").unwrap();
        let file = File::options().write(true).open(&program).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(age)).unwrap();
        let path = folder.path().join("new/p.tar.gz");
        example(folder.path()).write(&path).unwrap();
        fs::read(path).unwrap()
    }

    #[test]
    fn same_content_gives_the_same_bytes_in_another_folder_and_at_another_time() {
        assert_eq!(written(1_000_000), written(2_000_000));
    }

    #[test]
    fn entries_are_sorted_with_their_modes_and_the_one_time() {
        let bytes = written(5);
        let mut archive = tar::Archive::new(GzDecoder::new(bytes.as_slice()));
        let found = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            let (header, path) = (entry.header(), entry.path().unwrap().display().to_string());
            assert_eq!((header.mtime().unwrap(), header.uid().unwrap()), (1_700_000_000, 0));
            let link = entry.link_name().unwrap().map(|to| to.display().to_string());
            (path, header.mode().unwrap(), link)
        });
        let expected = [
            ("p/kubectl-portolan", 0o777, Some("portolan")),
            ("p/portolan", 0o755, None),
            ("p/share/text", 0o644, None),
        ];
        let expected = expected.map(|(path, mode, link)| (path.to_owned(), mode, link.map(str::to_owned)));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_missing_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = example(folder.path()).write(&folder.path().join("p.tar.gz")).unwrap_err();
        assert!(format!("{error:#}").contains("program"), "{error:#}");
    }
}
