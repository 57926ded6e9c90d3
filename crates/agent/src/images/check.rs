//! The check of a whole checkpoint.

use super::allowed::Allowed;
use super::files::{self, Files};
use super::folder::{Folder, Limits};
use super::image::Magic;
use super::kind::Kind;
use super::mounts::{Mount, Mounts};
use super::namespace::Namespace;
use super::process::{self, Core};
use super::refusal::{Damage, Refusal, Unfit};
use super::rule::Rule;
use super::seccomp::{Filters, Holder};
use super::tree::{self, Numbers, Process};
use super::{cgroup, ghosts};
use std::collections::BTreeSet;
use std::path::Path;

/// `CRTOOLS_IMAGES_V1_1`.
const VERSION: u32 = 2;

/// What a checkpoint that may be restored consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Processes.
    pub processes: usize,
    /// Threads of all processes.
    pub threads: usize,
    /// Mounts.
    pub mounts: usize,
    /// Open files.
    pub files: usize,
    /// Bytes of all images.
    pub bytes: u64,
    /// Paths of open files, of what is watched and of mounts. The kernel wrote them: in the container that was written down, none
    /// of them led through a link.
    pub paths: BTreeSet<String>,
    /// Paths of sockets, as the container named them.
    pub sockets: BTreeSet<String>,
    /// Archives of memory file systems. They are not opened here.
    pub archives: Vec<Archive>,
}

/// The archive of a memory file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// Its file.
    pub name: String,
    /// Where the file system is mounted, each with the folder of it that is seen there.
    pub mounts: Vec<(String, String)>,
}

/// Checks the checkpoint in a folder.
///
/// # Errors
/// It cannot be read, is damaged, or would have more rights than are allowed.
pub fn check(folder: &Path, allowed: &Allowed) -> Result<Summary, Refusal> {
    check_within(folder, allowed, Limits::default())
}

/// Checks the checkpoint in a folder, with limits.
///
/// # Errors
/// As [`check`].
pub fn check_within(folder: &Path, allowed: &Allowed, limits: Limits) -> Result<Summary, Refusal> {
    let folder = Folder::open(folder, limits)?;
    let inventory = Inventory::read(&folder)?;
    let processes = tree::processes(&folder)?;
    stray(&folder, &processes)?;

    let filters = Filters::read(folder.read_if_there("seccomp.img")?.as_ref())?;
    let checker = process::Checker { allowed, filters: &filters, lsm: inventory.lsm };
    let tasks = Tasks::check(&folder, &processes, &checker)?;
    let own = tasks.namespaces;
    let first = &processes[0];
    tree::check_first(&format!("ids-{}.img", first.pid), first.pid, &own, &inventory.node, allowed)?;
    tree::check_images(&folder, &own, allowed)?;

    let name = format!("mountpoints-{}.img", own.get(&Namespace::Mount).copied().unwrap_or(0));
    let mounts = Mounts::read(&name, &folder.read(&name)?, allowed)?;
    let checker = files::Checker { allowed, mounts: &mounts, namespaces: &own };
    let files = checker.files(&folder.read("files.img")?)?;
    references(&folder, &files, allowed)?;

    // Who is in CRIU's own cgroups stays there, and runc has put CRIU into the container's.
    let mut used = tasks.cgroup_sets;
    if let Some(set) = inventory.cgroup_set {
        used.remove(&set);
    }
    match folder.read_if_there("cgroup.img")? {
        Some(image) => cgroup::check(&image, &used, allowed)?,
        None if used.is_empty() => {}
        None => return Err(Refusal::unfit("cgroup.img", Unfit::Missing)),
    }
    Ok(Summary {
        processes: processes.len(),
        threads: processes.iter().map(|process| process.threads.len() + 1).sum(),
        mounts: mounts.0.len(),
        files: files.all.len(),
        bytes: folder.total_bytes(),
        paths: files.paths.into_iter().chain(mounts.0.values().map(|mount| mount.at.clone())).collect(),
        sockets: files.sockets,
        archives: archives(&folder, &mounts)?,
    })
}

struct Inventory {
    node: Numbers,
    cgroup_set: Option<u32>,
    lsm: u32,
}

impl Inventory {
    fn read(folder: &Folder) -> Result<Self, Refusal> {
        const NAME: &str = "inventory.img";
        let image = folder.read(NAME)?;
        let entry = image.one(Magic::Inventory)?;
        let found = entry.need_u32(1)?;
        if found != VERSION {
            return Err(Refusal::damaged(NAME, Damage::Version { found, expected: VERSION }));
        }
        // Whether descriptors and mounts have numbers of their own: all versions that write this format do.
        for field in [2, 4] {
            if !entry.flag(field)? {
                return Err(Refusal::damaged(NAME, Damage::Missing { field }));
            }
        }
        let node = entry.message(3)?.ok_or_else(|| Refusal::damaged(NAME, Damage::Missing { field: 3 }))?;
        Ok(Self { node: tree::numbers(&node)?, cgroup_set: entry.u32(5)?, lsm: entry.u32(6)?.unwrap_or(0) })
    }
}

/// Each image of a process or thread belongs to one in the tree.
fn stray(folder: &Folder, processes: &[Process]) -> Result<(), Refusal> {
    let pids: BTreeSet<u64> = processes.iter().map(|process| process.pid.into()).collect();
    let threads: BTreeSet<u64> =
        processes.iter().flat_map(|process| &process.threads).map(|thread| u64::from(*thread)).collect();
    for (name, entry) in folder.entries() {
        let known =
            pids.contains(&entry.number) || (name.starts_with("core-") && threads.contains(&entry.number));
        if entry.kind == Kind::Process && !known {
            return Err(Refusal::unfit(name, Unfit::Stray));
        }
    }
    Ok(())
}

/// What the processes and threads have together.
struct Tasks {
    namespaces: Numbers,
    cgroup_sets: BTreeSet<u32>,
}

impl Tasks {
    fn check(
        folder: &Folder,
        processes: &[Process],
        checker: &process::Checker<'_>,
    ) -> Result<Self, Refusal> {
        let mut namespaces = None;
        let mut cgroup_sets = BTreeSet::<u32>::new();
        for process in processes {
            let (leader, inner) = core(folder, process.pid, Holder::Leader, checker)?;
            if !process.has_leader && !leader.ended {
                return Err(Refusal::damaged("pstree.img", Damage::Missing { field: 5 }));
            }
            cgroup_sets.extend(leader.cgroup_set);
            for thread in &process.threads {
                let holder = Holder::Thread(leader.filter_for_all);
                cgroup_sets.extend(core(folder, *thread, holder, checker)?.0.cgroup_set);
            }
            let name = format!("ids-{}.img", process.pid);
            let found = match folder.read_if_there(&name)? {
                Some(image) => Some(tree::numbers(&image.one(Magic::Ids)?)?),
                None if leader.ended => None,
                None => return Err(Refusal::unfit(&name, Unfit::Missing)),
            };
            for found in [found, inner].into_iter().flatten() {
                let first = namespaces.get_or_insert_with(|| found.clone());
                if found != *first {
                    let pid = Some(process.pid);
                    let (found, allowed) = (format!("{found:?}"), format!("{first:?}"));
                    return Err(Refusal::rights(&name, pid, Rule::Namespace, found, allowed));
                }
            }
        }
        let namespaces = namespaces.ok_or_else(|| Refusal::unfit("ids-1.img", Unfit::Missing))?;
        Ok(Self { namespaces, cgroup_sets })
    }
}

/// Checks a core, and returns the namespaces that it has in itself, as older versions wrote them.
fn core(
    folder: &Folder,
    pid: u32,
    holder: Holder,
    checker: &process::Checker<'_>,
) -> Result<(Core, Option<Numbers>), Refusal> {
    let image = folder.read(&format!("core-{pid}.img"))?;
    let entry = image.one(Magic::Core)?;
    let core = checker.core(pid, &entry, holder)?;
    let inner = entry.message(4)?.map(|ids| tree::numbers(&ids)).transpose()?;
    Ok((core, inner))
}

/// Checks all images that refer to open files.
fn references(folder: &Folder, files: &Files, allowed: &Allowed) -> Result<(), Refusal> {
    for (name, entry) in folder.entries() {
        if name.starts_with("fdinfo-") {
            files::descriptors(&folder.read(name)?, files, allowed.selinux.as_deref())?;
        } else if name.starts_with("fs-") {
            let image = folder.read(name)?;
            let fs = image.one(Magic::Fs)?;
            files.need_regular(name, fs.need_u32(1)?)?;
            files.need_regular(name, fs.need_u32(2)?)?;
        } else if name.starts_with("mm-") {
            let image = folder.read(name)?;
            files.need_regular(name, image.one(Magic::Mm)?.need_u32(12)?)?;
        } else if entry.kind == Kind::Descriptors {
            standard(name, folder.read(name)?.bytes())?;
        }
    }
    ghosts::check(folder)?;
    if let Some(image) = folder.read_if_there("remap-fpath.img")? {
        ghosts::remaps(folder, &image, files)?;
    }
    match folder.read_if_there("tty-info.img")? {
        Some(image) => ghosts::terminals(&image, allowed.terminal),
        None => Ok(()),
    }
}

/// `descriptors.json`: runc gives the container its own pipes for those that are named there.
fn standard(name: &str, json: &[u8]) -> Result<(), Refusal> {
    let damaged = || Refusal::damaged(name, Damage::Descriptors);
    let names: Vec<String> = serde_json::from_slice(json).map_err(|_| damaged())?;
    let pipe = |name: &str| {
        let number = name.strip_prefix("pipe:[").and_then(|rest| rest.strip_suffix(']'));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let fits = |name: &String| !name.contains("pipe:") || pipe(name);
    if names.len() <= 3 && names.iter().all(fits) { Ok(()) } else { Err(damaged()) }
}

/// The archives of memory file systems, each of one that is mounted.
fn archives(folder: &Folder, mounts: &Mounts) -> Result<Vec<Archive>, Refusal> {
    let mut archives = Vec::new();
    for (name, entry) in folder.entries().filter(|(_, entry)| entry.kind == Kind::Archive) {
        let by_device = name.starts_with("tmpfs-dev-");
        let of_archive = |mount: &&Mount| {
            let number = if by_device { mount.device } else { mount.id };
            mount.is_tmpfs() && u64::from(number) == entry.number
        };
        let found = mounts.0.values().filter(of_archive);
        let mounts: Vec<_> = found.map(|mount| (mount.at.clone(), mount.root.clone())).collect();
        if mounts.is_empty() {
            return Err(Refusal::unfit(name, Unfit::Stray));
        }
        archives.push(Archive { name: name.to_owned(), mounts });
    }
    Ok(archives)
}
