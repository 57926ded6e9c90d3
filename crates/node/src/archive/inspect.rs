//! Streams that are judged and not unpacked: somebody else unpacks them later.

use super::entry::EntryPath;
use super::judge::{check_link, is_of_a_tree, judge, rights};
use super::stream::Summed;
use super::walk::{Entry, Failure, walk};
use super::{ArchiveError, Kind, Limits, Refusal, Summary};
use flate2::read::MultiGzDecoder;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::Path;
use tar::EntryType;

/// How many symbolic links one file system in memory may have: they are remembered.
const MOST_LINKS: usize = 10_000;

/// A device, by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Device {
    /// Whether it is a block device.
    pub block: bool,
    /// Its major number.
    pub major: u32,
    /// Its minor number.
    pub minor: u32,
}

/// What a file system in memory held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// How many bytes in files.
    pub bytes: u64,
    /// Its symbolic links, by their paths from its root, with a slash before; and what they point to.
    pub links: BTreeMap<String, String>,
}

/// Checks what can be checked of a stream without unpacking it.
///
/// # Errors
/// The stream holds something that it must not, or cannot be read.
pub fn inspect(kind: Kind, from: impl Read, limits: &Limits) -> Result<Summary, ArchiveError> {
    let mut stream = Summed::new(from, limits.stream_bytes());
    let counted = whole(&mut stream, limits, |entry| judge(kind, entry, limits).map(|_| ()))?;
    Ok(Summary { entries: counted.entries, bytes: counted.bytes, sha256: stream.sha256() })
}

/// Checks the archive of a file system in memory that is mounted there, as CRIU has GNU tar write it. GNU tar makes what it holds,
/// as root, and with these devices only.
///
/// # Errors
/// It holds something that it must not, or cannot be read.
pub fn inspect_memory(
    from: impl Read,
    at: &str,
    devices: &BTreeSet<Device>,
    limits: &Limits,
) -> Result<Memory, ArchiveError> {
    let mut stream = Summed::new(MultiGzDecoder::new(from), limits.stream_bytes());
    let mut links = BTreeMap::new();
    let counted = whole(&mut stream, limits, |entry| {
        if let Some((path, target)) = of_memory(entry, at, devices, limits)? {
            links.insert(path, target);
            if links.len() > MOST_LINKS {
                return Err(Refusal::TooManyLinks(MOST_LINKS));
            }
        }
        Ok(())
    })?;
    Ok(Memory { bytes: counted.bytes, links })
}

/// Walks through a stream to its very end.
fn whole(
    stream: &mut Summed<impl Read>,
    limits: &Limits,
    mut each: impl FnMut(&Entry<'_>) -> Result<(), Refusal>,
) -> Result<super::walk::Counted, ArchiveError> {
    let limit = limits.stream_bytes();
    let walked = walk(stream, limits, |entry, _| each(entry).map_err(Failure::Refused));
    let counted = match walked {
        Err(ArchiveError::Stream(error)) => return Err(stream.error(error, limit)),
        walked => walked?,
    };
    match io::copy(stream, &mut io::sink()) {
        Ok(_) => Ok(counted),
        Err(error) => Err(stream.error(error, limit)),
    }
}

/// Checks an entry of a file system in memory. Its path and its target, if it is a symbolic link.
fn of_memory(
    entry: &Entry<'_>,
    at: &str,
    devices: &BTreeSet<Device>,
    limits: &Limits,
) -> Result<Option<(String, String)>, Refusal> {
    let parsed = EntryPath::parse(entry.path)?;
    match entry.kind {
        EntryType::Char | EntryType::Block => {
            let number = |number: io::Result<Option<u32>>| {
                number.map_err(|error| Refusal::Header(error.to_string())).map(Option::unwrap_or_default)
            };
            let (major, minor) = (number(entry.header.device_major())?, number(entry.header.device_minor())?);
            if !devices.contains(&Device { block: entry.kind == EntryType::Block, major, minor }) {
                return Err(Refusal::DeviceNumber { major, minor });
            }
        }
        kind if is_of_a_tree(kind) => {}
        kind => return Err(Refusal::Type(char::from(kind.as_byte()))),
    }
    let Some(name) = &parsed.name else {
        return if entry.kind == EntryType::Directory { Ok(None) } else { Err(Refusal::NoPath) };
    };
    rights(Kind::Volume, entry.kind, entry.header, limits)?;
    // Its links are those of the container's root.
    let folder = Path::new(at).join(&parsed.parent);
    check_link(entry, folder.as_os_str(), true)?;
    let (EntryType::Symlink, Some(target)) = (entry.kind, entry.target) else { return Ok(None) };
    let path: std::path::PathBuf = Path::new("/").join(&parsed.parent).join(name).components().collect();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| Refusal::NoPath);
    Ok(Some((text(path.as_os_str().as_encoded_bytes())?, text(target)?)))
}
