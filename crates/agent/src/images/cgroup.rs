//! Cgroups: a process is put into no other one than the container's.
//!
//! For each controller, `cgroup.img` has the folder that the container was in. runc replaces this folder by the new container's
//! and leaves what does not lie in it as it is: such a path is one of the node.

use super::allowed::Allowed;
use super::image::{Image, Magic};
use super::namespace::Namespace;
use super::path;
use super::refusal::{Damage, Refusal};
use super::rule::Rule;
use super::wire::Fields;
use std::collections::{BTreeMap, BTreeSet};

/// How deep folders may lie in each other.
const DEEPEST: usize = 12;
/// Controllers that every node with cgroup v1 has.
const LIMITING: [&str; 7] = ["blkio", "cpu", "cpuset", "devices", "freezer", "memory", "pids"];
/// What cgroup v2 is called.
const UNIFIED: &str = "";
/// Further hierarchies. CRIU drops "name=" and mounts what is left, so that any other name could be one of a controller.
const FURTHER: [&str; 9] =
    [UNIFIED, "cpuacct", "hugetlb", "misc", "name=systemd", "net_cls", "net_prio", "perf_event", "rdma"];

/// Checks `cgroup.img`. `used` are the sets that a process or thread is in.
pub(super) fn check(image: &Image, used: &BTreeSet<u32>, allowed: &Allowed) -> Result<(), Refusal> {
    let entry = image.one(Magic::Cgroup)?;
    let folders = folders(&entry, allowed)?;
    // A node with cgroup v1 has cgroup v2 beside it, without controllers, and containers in its root.
    let v1 = LIMITING.iter().all(|name| folders.contains_key(*name))
        && !allowed.namespaces.contains_key(&Namespace::Cgroup);
    if !v1 && folders.get(UNIFIED).is_some_and(|folder| folder == "/") {
        return Err(refused(&entry, "the root of cgroup v2".to_owned(), "the cgroup of a container"));
    }
    let mut known = BTreeSet::new();
    for set in entry.messages(1)? {
        let id = set.need_u32(1)?;
        if !known.insert(id) {
            return Err(Refusal::damaged(set.image(), Damage::SameNumber { number: id }));
        }
        if used.contains(&id) {
            members(&set, &folders)?;
        }
    }
    match used.iter().find(|id| !known.contains(*id)) {
        Some(id) => Err(refused(&entry, format!("no set {id}"), "the sets of all processes")),
        None => Ok(()),
    }
}

/// The folders that the container has, by controller.
fn folders(entry: &Fields<'_>, allowed: &Allowed) -> Result<BTreeMap<String, String>, Refusal> {
    let mut names = BTreeSet::new();
    let mut folders = BTreeMap::new();
    for controller in entry.messages(2)? {
        let folder = root(&controller, allowed)?;
        for name in controller.texts(1)? {
            if !LIMITING.contains(&name) && !FURTHER.contains(&name) {
                let found = format!("the hierarchy {name:?}");
                return Err(refused(&controller, found, "controllers of the kernel and name=systemd"));
            }
            if !names.insert(name.to_owned()) {
                return Err(refused(&controller, "a controller twice".to_owned(), "each once"));
            }
            if name != UNIFIED && folder.as_deref() == Some("/") {
                let found = format!("the root of {name:?}");
                return Err(refused(&controller, found, "the cgroup of a container"));
            }
            if let Some(folder) = &folder {
                folders.insert(name.to_owned(), folder.clone());
            }
        }
    }
    Ok(folders)
}

/// The folder that the container has of a controller, with all in it checked.
fn root(controller: &Fields<'_>, allowed: &Allowed) -> Result<Option<String>, Refusal> {
    let mut root = None;
    for folder in controller.messages(2)? {
        // CRIU writes it without the slash at its start.
        let name = format!("/{}", folder.need_text(1)?);
        if root.is_some() || !path::is_normal(&name) {
            return Err(refused(controller, format!("the folder {name:?}"), "one path without '..'"));
        }
        let source = allowed.source_cgroup.as_deref();
        if source.is_some_and(|source| name != "/" && !path::is_in(&name, source)) {
            return Err(refused(controller, format!("{name:?}"), source.unwrap_or_default()));
        }
        root = Some(name);
        contents(&folder, 0)?;
    }
    Ok(root)
}

fn contents(folder: &Fields<'_>, depth: usize) -> Result<(), Refusal> {
    if depth >= DEEPEST {
        return Err(refused(folder, format!("more than {DEEPEST} folders in each other"), DEEPEST));
    }
    // CRIU opens the file of each property by its name.
    for property in folder.messages(3)? {
        let name = property.need_text(1)?;
        if name.is_empty() || name.contains('/') || name.starts_with('.') {
            return Err(refused(folder, format!("the property {name:?}"), "names of properties"));
        }
    }
    for child in folder.messages(2)? {
        let name = child.need_text(1)?;
        let mut parts = name.trim_start_matches('/').split('/');
        if parts.any(|part| part.is_empty() || part == "." || part == "..") {
            return Err(refused(folder, format!("the folder {name:?}"), "folders in the container's"));
        }
        contents(&child, depth + 1)?;
    }
    Ok(())
}

fn members(set: &Fields<'_>, folders: &BTreeMap<String, String>) -> Result<(), Refusal> {
    for member in set.messages(2)? {
        let (names, found) = (member.need_text(1)?, member.need_text(2)?);
        // One hierarchy may have several controllers: "cpu,cpuacct".
        for name in names.split(',') {
            let folder = folders.get(name).map(String::as_str);
            let inside = folder.is_some_and(|folder| path::is_normal(found) && path::is_in(found, folder));
            if !inside {
                let allowed = folder.unwrap_or("no such controller");
                return Err(refused(set, format!("{found:?} of {name:?}"), allowed));
            }
        }
    }
    Ok(())
}

fn refused(message: &Fields<'_>, found: String, allowed: impl std::fmt::Display) -> Refusal {
    Refusal::rights(message.image(), None, Rule::Cgroup, found, allowed)
}
