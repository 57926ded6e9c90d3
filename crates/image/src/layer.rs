//! The one layer of an image.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use super::ImageError;

/// Something in the layer.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    File { mode: u32, source: Source },
    Directory { mode: u32 },
    Symlink { points_to: PathBuf },
}

/// Where a file's content comes from.
#[derive(Debug, Clone)]
pub(super) enum Source {
    Bytes(Vec<u8>),
    Path(PathBuf),
}

/// The path as it stands in a layer, without the leading slash; none for what is no absolute path below the root.
pub(super) fn normalise(path: &str) -> Option<String> {
    let relative = path.strip_prefix('/')?;
    let mut names = Vec::new();
    for name in relative.split('/') {
        match name {
            "" | "." => {}
            ".." => return None,
            name => names.push(name),
        }
    }
    (!names.is_empty() && !path.contains('\0')).then(|| names.join("/"))
}

/// Writes the layer: entries in the order of their names, each below its directories, all owned by root, no times.
pub(super) fn write(
    image: &str,
    entries: &BTreeMap<String, Entry>,
    to: impl Write,
) -> Result<(), ImageError> {
    let failed = || ImageError::io("write layer of", image.as_ref());
    let mut archive = tar::Builder::new(to);
    let mut made = BTreeMap::new();
    for (path, entry) in entries {
        make_parents(&mut archive, image, path, entries, &mut made)?;
        match entry {
            Entry::Directory { mode } => {
                if made.insert(path.clone(), ()).is_none() {
                    append_directory(&mut archive, path, *mode).map_err(failed())?;
                }
            }
            Entry::Symlink { points_to } => {
                let mut header = header(tar::EntryType::Symlink, 0o777, 0);
                archive.append_link(&mut header, path, points_to).map_err(failed())?;
            }
            Entry::File { mode, source: Source::Bytes(bytes) } => {
                append_file(&mut archive, path, *mode, bytes.len() as u64, bytes.as_slice())
                    .map_err(failed())?;
            }
            Entry::File { mode, source: Source::Path(source) } => {
                let file = File::open(source).map_err(ImageError::io("open", source))?;
                let size = file.metadata().map_err(ImageError::io("read", source))?.len();
                append_file(&mut archive, path, *mode, size, file).map_err(ImageError::io("pack", source))?;
            }
        }
    }
    archive.into_inner().and_then(|mut to| to.flush()).map_err(failed())
}

fn make_parents(
    archive: &mut tar::Builder<impl Write>,
    image: &str,
    path: &str,
    entries: &BTreeMap<String, Entry>,
    made: &mut BTreeMap<String, ()>,
) -> Result<(), ImageError> {
    for (end, _) in path.match_indices('/') {
        let parent = &path[..end];
        let mode = match entries.get(parent) {
            None => 0o755,
            Some(Entry::Directory { mode }) => *mode,
            Some(Entry::File { .. } | Entry::Symlink { .. }) => {
                return Err(ImageError::BelowFile {
                    image: image.to_owned(),
                    path: path.to_owned(),
                    parent: parent.to_owned(),
                });
            }
        };
        if made.insert(parent.to_owned(), ()).is_none() {
            append_directory(archive, parent, mode)
                .map_err(ImageError::io("write layer of", image.as_ref()))?;
        }
    }
    Ok(())
}

fn append_directory(archive: &mut tar::Builder<impl Write>, path: &str, mode: u32) -> io::Result<()> {
    let mut header = header(tar::EntryType::Directory, mode, 0);
    archive.append_data(&mut header, format!("{path}/"), io::empty())
}

fn append_file(
    archive: &mut tar::Builder<impl Write>,
    path: &str,
    mode: u32,
    size: u64,
    content: impl Read,
) -> io::Result<()> {
    // A file that changes its length meanwhile would shift everything behind it.
    let mut content = content.take(size);
    let mut header = header(tar::EntryType::Regular, mode, size);
    archive.append_data(&mut header, path, &mut content)?;
    if content.limit() == 0 {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it became shorter while it was read"))
    }
}

pub(super) fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size);
    header
}
