//! Open files: of which types they are, and that their paths lie in mounts of the container.

use super::allowed::Allowed;
use super::capability::CapabilitySet;
use super::image::{Image, Magic};
use super::mounts::Mounts;
use super::namespace::Namespace;
use super::path;
use super::refusal::{Damage, Refusal};
use super::rule::Rule;
use super::tree::Numbers;
use super::wire::Fields;
use std::collections::BTreeSet;

/// `AF_INET` and `AF_INET6`.
const INTERNET: [u32; 2] = [2, 10];
/// `SOCK_RAW` and `SOCK_PACKET`.
const RAW_SOCKETS: [u32; 2] = [3, 10];
/// A socket of another one's, whom CRIU would connect to (`USK_EXTERN`).
const EXTERNAL_SOCKET: u32 = 1;
const FORMAT: u32 = 0o170_000;
const CHARACTER_DEVICE: u32 = 0o020_000;
const BLOCK_DEVICE: u32 = 0o060_000;

/// What the other checks need of the open files.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// The types and numbers of all.
    pub(super) all: BTreeSet<(u32, u32)>,
    /// Files with a path.
    pub(super) regular: BTreeSet<u32>,
    /// The paths of files, and of what is watched.
    pub(super) paths: BTreeSet<String>,
    /// The paths of sockets.
    pub(super) sockets: BTreeSet<String>,
}

impl Files {
    /// Notes the paths of a file that was checked.
    fn collect(&mut self, file_type: u32, file: &Fields<'_>) -> Result<(), Refusal> {
        match file_type {
            1 => {
                self.paths.insert(file.need_text(6)?.to_owned());
            }
            5 => self.sockets.extend(socket_path(file)?.and_then(|path| path::normal(&format!("/{path}")))),
            8 => {
                for watch in file.messages(5)? {
                    if let Some(handle) = watch.message(7)? {
                        self.paths.extend(handle.text(4)?.map(str::to_owned));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Fails unless there is a file with a path of that number.
    pub(super) fn need_regular(&self, image: &str, id: u32) -> Result<(), Refusal> {
        if self.regular.contains(&id) {
            return Ok(());
        }
        Err(Refusal::rights(
            image,
            None,
            Rule::FileReference,
            format!("file {id}"),
            "files with a path of files.img",
        ))
    }
}

/// What open files are checked against.
pub(super) struct Checker<'a> {
    pub(super) allowed: &'a Allowed,
    pub(super) mounts: &'a Mounts,
    pub(super) namespaces: &'a Numbers,
}

impl Checker<'_> {
    /// Checks `files.img`.
    pub(super) fn files(&self, image: &Image) -> Result<Files, Refusal> {
        let mut files = Files::default();
        let entries = image.all(Magic::Files)?;
        for entry in &entries {
            let (file_type, id) = (entry.need_u32(1)?, entry.need_u32(2)?);
            if !files.all.insert((file_type, id)) {
                return Err(Refusal::damaged(entry.image(), Damage::SameNumber { number: id }));
            }
            let field = field_of(file_type).ok_or_else(|| unknown_type(entry, file_type))?;
            let missing = || Refusal::damaged(entry.image(), Damage::Missing { field });
            let file = entry.message(field)?.ok_or_else(missing)?;
            // CRIU finds a file by the number in this message.
            if file.need_u32(1)? != id {
                return Err(Refusal::damaged(entry.image(), Damage::SameNumber { number: id }));
            }
            if self.file(file_type, &file)? {
                files.regular.insert(id);
            }
            files.collect(file_type, &file)?;
        }
        // Named pipes and terminals may have a path.
        for entry in &entries {
            let reference = match entry.need_u32(1)? {
                3 => entry.message(17)?.map(|fifo| fifo.u32(3)),
                11 => entry.message(19)?.map(|terminal| terminal.u32(6)),
                _ => None,
            };
            if let Some(id) = reference.transpose()?.flatten().filter(|id| *id != 0) {
                files.need_regular(entry.image(), id)?;
            }
        }
        Ok(files)
    }

    /// Checks one file, and returns whether it is one with a path.
    fn file(&self, file_type: u32, file: &Fields<'_>) -> Result<bool, Refusal> {
        match file_type {
            1 => {
                self.regular(file)?;
                return Ok(true);
            }
            4 => {
                self.namespace_of(file, 18)?;
                let family = file.need_u32(3)?;
                if !INTERNET.contains(&family) {
                    let found = format!("a socket of family {family}");
                    return Err(refused(file, Rule::FileType, &found, "families 2 and 10"));
                }
                // Above the type are flags of socket(2).
                self.raw(file, RAW_SOCKETS.contains(&(file.need_u32(4)? & 0xf)))?;
            }
            5 => self.unix(file)?,
            10 => {
                self.namespace_of(file, 20)?;
                self.raw(file, true)?;
            }
            8 => self.watches(file)?,
            12 if !self.allowed.can_get(CapabilitySet::SYS_ADMIN) => {
                return Err(refused(file, Rule::FileType, "a watch of whole file systems", "none"));
            }
            13 => self.namespace_of(file, 13)?,
            14 => {
                let namespace = file.need_u32(2)?;
                if !self.namespaces.values().any(|own| *own == namespace) {
                    let found = format!("namespace {namespace}");
                    return Err(refused(file, Rule::Namespace, &found, "its own namespaces"));
                }
            }
            _ => {}
        }
        Ok(false)
    }

    fn regular(&self, file: &Fields<'_>) -> Result<(), Refusal> {
        let name = file.need_text(6)?;
        let shown = format!("{name:?}");
        if !path::is_normal(name) || path::leads_through_proc(name) {
            return Err(refused(
                file,
                Rule::FilePath,
                &shown,
                "absolute paths without '..', and no links to /proc",
            ));
        }
        if file.flag(9)? {
            return Err(refused(
                file,
                Rule::FilePath,
                &format!("{shown} of the node"),
                "files of the container",
            ));
        }
        let mount = file.signed(7)?.and_then(|mount| u32::try_from(mount).ok());
        if !mount.is_some_and(|mount| self.mounts.0.contains_key(&mount)) {
            let found = format!("{shown} on another mount");
            return Err(refused(file, Rule::FilePath, &found, "files on the mounts of the container"));
        }
        // CRIU compares what it opens with the mode only if there is one, so that without it any device would do.
        let Some(mode) = file.u32(10)? else {
            return Err(refused(file, Rule::FileType, &format!("{shown} without a mode"), "files of a type"));
        };
        match mode & FORMAT {
            BLOCK_DEVICE => Err(refused(file, Rule::FileType, &format!("the disk {shown}"), "no disks")),
            CHARACTER_DEVICE if !path::is_in(name, "/dev") => {
                Err(refused(file, Rule::FileType, &format!("the device {shown}"), "devices in /dev"))
            }
            _ => Ok(()),
        }
    }

    /// What inotify watches. CRIU finds a file by its path, if it was written down, or else by its handle on the node's whole
    /// file system: the number of an inode, which on another node is one of any other file, or of none.
    fn watches(&self, file: &Fields<'_>) -> Result<(), Refusal> {
        for watch in file.messages(5)? {
            let handle = watch.message(7)?;
            let handle =
                handle.ok_or_else(|| Refusal::damaged(file.image(), Damage::Missing { field: 7 }))?;
            let Some(name) = handle.text(4)? else {
                let found = format!("a watch of inode {} without a path", watch.number(2)?.unwrap_or(0));
                return Err(refused(file, Rule::FilePath, &found, "watches of paths in the container"));
            };
            let mounted = handle.u32(5)?.is_some_and(|mount| self.mounts.0.contains_key(&mount));
            if !mounted || !path::is_normal(name) || path::leads_through_proc(name) {
                let found = format!("a watch of {name:?}");
                return Err(refused(file, Rule::FilePath, &found, "watches of paths in the container"));
            }
        }
        Ok(())
    }

    fn unix(&self, file: &Fields<'_>) -> Result<(), Refusal> {
        self.namespace_of(file, 16)?;
        let name = file.bytes(11)?.unwrap_or(&[]);
        // CRIU keeps the zero byte at the end; one at the start makes it a name without a path.
        let name = name.strip_suffix(b"\0").unwrap_or(name);
        let shown = String::from_utf8_lossy(name);
        if file.need_u32(6)? & EXTERNAL_SOCKET != 0 {
            return Err(refused(
                file,
                Rule::UnixSocket,
                &format!("{shown:?} of the node"),
                "sockets of the container",
            ));
        }
        let leads_out =
            |path: &str| path::normal(&format!("/{path}")).is_none_or(|path| path::leads_through_proc(&path));
        let folder = file.text(14)?.unwrap_or("/");
        // A relative name is one in the folder.
        let whole = if shown.starts_with('/') { shown.to_string() } else { format!("{folder}/{shown}") };
        if !name.starts_with(b"\0") && [&*shown, folder, &whole].into_iter().any(leads_out) {
            return Err(refused(
                file,
                Rule::UnixSocket,
                &format!("{shown:?} in {folder:?}"),
                "paths without '..'",
            ));
        }
        Ok(())
    }

    fn raw(&self, file: &Fields<'_>, raw: bool) -> Result<(), Refusal> {
        if raw && !self.allowed.can_get(CapabilitySet::NET_RAW) {
            return Err(refused(file, Rule::FileType, "a raw socket", "none without CAP_NET_RAW"));
        }
        Ok(())
    }

    /// A socket must be in the container's network.
    fn namespace_of(&self, file: &Fields<'_>, field: u32) -> Result<(), Refusal> {
        let found = file.u32(field)?.unwrap_or(0);
        let own = self.namespaces.get(&Namespace::Network).copied().unwrap_or(0);
        if found == 0 || found == own {
            return Ok(());
        }
        Err(refused(file, Rule::Namespace, &format!("network {found}"), &format!("network {own}")))
    }
}

/// The field of `file_entry` for a type that a container may have open. Not among them: tunnels, files of plugins, maps for
/// the kernel.
fn field_of(file_type: u32) -> Option<u32> {
    Some(match file_type {
        1 => 3,
        2 => 18,
        3 => 17,
        4 => 4,
        5 => 16,
        6 => 8,
        7 => 9,
        8 => 13,
        9 => 10,
        10 => 6,
        11 => 19,
        12 => 14,
        13 => 7,
        14 => 5,
        17 => 12,
        18 => 20,
        20 => 22,
        _ => return None,
    })
}

/// The path of a Unix socket from the root of the container, if it has one: a relative name is one in its folder.
fn socket_path(file: &Fields<'_>) -> Result<Option<String>, Refusal> {
    let name = file.bytes(11)?.unwrap_or(&[]);
    let name = name.strip_suffix(b"\0").unwrap_or(name);
    // A zero byte at the start makes it a name without a path.
    if name.is_empty() || name.starts_with(b"\0") {
        return Ok(None);
    }
    let shown = String::from_utf8_lossy(name);
    if shown.starts_with('/') {
        return Ok(Some(shown.into_owned()));
    }
    Ok(Some(format!("{}/{shown}", file.text(14)?.unwrap_or("/"))))
}

fn unknown_type(entry: &Fields<'_>, file_type: u32) -> Refusal {
    let found = match file_type {
        15 => "a tunnel".to_owned(),
        16 => "a file of a plugin".to_owned(),
        19 => "a map for programs in the kernel".to_owned(),
        file_type => format!("type {file_type}"),
    };
    refused(entry, Rule::FileType, &found, "files, pipes, sockets and the like")
}

fn refused(file: &Fields<'_>, rule: Rule, found: &str, allowed: &str) -> Refusal {
    Refusal::rights(file.image(), None, rule, found, allowed)
}

/// Checks `fdinfo-*.img`: each descriptor is one of a file that was checked, and of its type.
pub(super) fn descriptors(image: &Image, files: &Files, label: Option<&str>) -> Result<(), Refusal> {
    for entry in image.all(Magic::FdInfo)? {
        let (id, file_type) = (entry.need_u32(1)?, entry.need_u32(3)?);
        if !files.all.contains(&(file_type, id)) {
            let found = format!("file {id} of type {file_type}");
            return Err(refused(&entry, Rule::FileReference, &found, "files of files.img"));
        }
        match entry.text(5)? {
            Some(found) if !found.is_empty() && Some(found) != label => {
                return Err(refused(&entry, Rule::LsmProfile, found, label.unwrap_or("none")));
            }
            _ => {}
        }
    }
    Ok(())
}
