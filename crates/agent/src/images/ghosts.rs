//! Files that were deleted while they were open, and terminals.

use super::files::Files;
use super::folder::Folder;
use super::image::{Image, Magic};
use super::kind::Kind;
use super::refusal::{Refusal, Unfit};
use super::rule::Rule;

/// Bytes of a ghost file that are read: its entry without its content.
const START: u64 = 16 << 10;
const FORMAT: u32 = 0o170_000;
/// A regular file, a folder, a link, a pipe and a socket. Not among them: devices.
const FORMATS: [u32; 5] = [0o100_000, 0o040_000, 0o120_000, 0o010_000, 0o140_000];
const SET_ID: u32 = 0o6_000;

/// Checks `ghost-file-*.img`: CRIU would make each of them as root.
pub(super) fn check(folder: &Folder) -> Result<(), Refusal> {
    for (name, entry) in folder.entries() {
        if entry.kind != Kind::GhostFile {
            continue;
        }
        let image = folder.start(name, START)?;
        let mode = image.first(Magic::GhostFile)?.need_u32(3)?;
        if !FORMATS.contains(&(mode & FORMAT)) {
            return Err(ghost(
                name,
                format!("a device, mode {mode:o}"),
                "files, folders, links, pipes and sockets",
            ));
        }
        // Of a folder, it is no right.
        if mode & SET_ID != 0 && mode & FORMAT == FORMATS[0] {
            return Err(ghost(
                name,
                format!("mode {mode:o}"),
                "files without set-user-ID and set-group-ID bits",
            ));
        }
    }
    Ok(())
}

fn ghost(name: &str, found: String, allowed: &str) -> Refusal {
    Refusal::rights(name, None, Rule::GhostFile, found, allowed)
}

/// Checks `remap-fpath.img`: what says where deleted files are.
pub(super) fn remaps(folder: &Folder, image: &Image, files: &Files) -> Result<(), Refusal> {
    const LINKED: u32 = 0;
    const GHOST: u32 = 1;
    const PROCESS: u32 = 2;
    for entry in image.all(Magic::RemapPaths)? {
        let (original, remap) = (entry.need_u32(1)?, entry.need_u32(2)?);
        files.need_regular(entry.image(), original)?;
        match entry.u32(3)?.unwrap_or(LINKED) {
            LINKED => files.need_regular(entry.image(), remap)?,
            GHOST => {
                let name = format!("ghost-file-{remap:x}.img");
                if !folder.has(&name) {
                    return Err(Refusal::unfit(&name, Unfit::Missing));
                }
            }
            PROCESS => {}
            other => {
                let found = format!("remap type {other}");
                return Err(Refusal::rights(
                    entry.image(),
                    None,
                    Rule::GhostFile,
                    found,
                    "those of CRIU 4.2",
                ));
            }
        }
    }
    Ok(())
}

/// Checks `tty-info.img`: terminals of the container itself, and the one that the runtime gives it.
pub(super) fn terminals(image: &Image, terminal: bool) -> Result<(), Refusal> {
    const PSEUDO: u32 = 1;
    const CURRENT: u32 = 4;
    const EXTERNAL: u32 = 5;
    for entry in image.all(Magic::TtyInfo)? {
        match entry.need_u32(2)? {
            PSEUDO | CURRENT => {}
            EXTERNAL if terminal => {}
            other => {
                let found = format!("a terminal of type {other}");
                return Err(Refusal::rights(
                    entry.image(),
                    None,
                    Rule::Terminal,
                    found,
                    "terminals of its own",
                ));
            }
        }
    }
    Ok(())
}
