//! Mounts: only those of the spec, none writable that the spec has read-only, nothing hidden.

use super::allowed::{Allowed, AllowedMount};
use super::image::{Image, Magic};
use super::path;
use super::refusal::{Damage, Refusal};
use super::rule::Rule;
use super::wire::Fields;
use std::collections::BTreeMap;

const READ_ONLY: u32 = 1;
/// Options of the spec with the flags of `mount(2)` that must be set with them.
const RESTRICTIONS: [(&str, u32); 4] = [("ro", READ_ONLY), ("nosuid", 2), ("nodev", 4), ("noexec", 8)];
/// Numbers of file systems in the images.
const TMPFS: u32 = 5;
const DEVPTS: u32 = 6;
const CGROUP: u32 = 12;
/// What runc mounts over a file that is masked.
const NULL: &str = "/dev/null";

/// A mount of the images.
#[derive(Clone, Debug)]
pub(super) struct Mount {
    pub(super) at: String,
    pub(super) id: u32,
    pub(super) device: u32,
    fstype: u32,
    parent: u32,
    flags: u32,
    pub(super) root: String,
    /// What the container runtime is asked for to mount there, instead of what the image says.
    pub(super) external: Option<String>,
    shared: bool,
}

impl Mount {
    /// Whether it is a file system in memory.
    pub(super) fn is_tmpfs(&self) -> bool {
        self.fstype == TMPFS
    }

    fn read(entry: &Fields<'_>) -> Result<Self, Refusal> {
        let image = entry.image();
        let at = entry.need_text(7)?;
        let refused = |rule, found: &str, allowed: &str| {
            Err(Refusal::rights(image, None, rule, format!("{found} at {at:?}"), allowed))
        };
        if !path::is_normal(at) {
            return refused(Rule::Mount, "a path that leads elsewhere", "absolute paths without '..'");
        }
        if entry.flag(12)? {
            return refused(Rule::MountSource, "a mount by a plugin of CRIU", "no plugins");
        }
        if entry.flag(16)? {
            return refused(Rule::Mount, "a deleted folder with a mount", "mounts of the spec");
        }
        let root = entry.need_text(6)?;
        // Where the old flag is set, CRIU takes the root as the key, whatever the key is.
        let external = match (entry.flag(13)?, entry.text(18)?) {
            (false, key) => key,
            (true, None) => Some(root),
            (true, Some(_)) => return refused(Rule::MountSource, "two keys of one mount", "one"),
        };
        // Without the flags of the file system, CRIU takes "read-only" out of those of the mount, and mounts it writable.
        if entry.u32(17)?.is_none() {
            return refused(Rule::MountOptions, "a mount without field 17", "flags of mount and file system");
        }
        Ok(Self {
            at: at.to_owned(),
            id: entry.need_u32(2)?,
            device: entry.need_u32(3)?,
            fstype: entry.need_u32(1)?,
            parent: entry.need_u32(4)?,
            flags: entry.need_u32(5)?,
            root: root.to_owned(),
            external: external.map(str::to_owned),
            shared: entry.u32(10)?.unwrap_or(0) != 0,
        })
    }
}

/// The mounts of the container, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Mounts(pub(super) BTreeMap<u32, Mount>);

impl Mounts {
    /// Reads and checks `mountpoints-*.img`.
    pub(super) fn read(name: &str, image: &Image, allowed: &Allowed) -> Result<Self, Refusal> {
        let mut mounts = Vec::new();
        for entry in image.all(Magic::Mountpoints)? {
            mounts.push(Mount::read(&entry)?);
        }
        let mut by_path = BTreeMap::new();
        let mut by_id = BTreeMap::new();
        for mount in &mounts {
            if by_path.insert(mount.at.as_str(), mount).is_some() {
                let found = format!("two mounts at {:?}", mount.at);
                return Err(Refusal::rights(name, None, Rule::MountOrder, found, "one"));
            }
            if by_id.insert(mount.id, mount.clone()).is_some() {
                return Err(Refusal::damaged(name, Damage::SameNumber { number: mount.id }));
            }
        }
        if !by_path.contains_key("/") {
            return Err(Refusal::rights(name, None, Rule::MountOrder, "no root", "one"));
        }
        let checker = Checker { name, mounts: by_path, allowed };
        for mount in &mounts {
            checker.check(mount)?;
        }
        checker.origins()?;
        checker.hidden(&allowed.masked, Rule::MaskedPath)?;
        checker.hidden(&allowed.readonly, Rule::ReadonlyPath)?;
        Ok(Self(by_id))
    }
}

/// A path of a file system as it is seen through a mount of the folder `root` of it.
fn below<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    if !path::is_normal(path) || !path::is_in(path, root) {
        return None;
    }
    match path.strip_prefix(root).filter(|_| root != "/") {
        None => Some(path),
        Some("") => Some("/"),
        below => below,
    }
}

pub(super) struct Checker<'a> {
    name: &'a str,
    pub(super) mounts: BTreeMap<&'a str, &'a Mount>,
    pub(super) allowed: &'a Allowed,
}

impl Checker<'_> {
    pub(super) fn refused(&self, rule: Rule, found: String, allowed: impl std::fmt::Display) -> Refusal {
        Refusal::rights(self.name, None, rule, found, allowed)
    }

    /// The mount that a path lies in, from outside.
    pub(super) fn around(&self, at: &str) -> Option<&Mount> {
        let mut folder = at;
        while let Some((parent, _)) = folder.rsplit_once('/').filter(|_| folder != "/") {
            folder = if parent.is_empty() { "/" } else { parent };
            if let Some(mount) = self.mounts.get(folder) {
                return Some(mount);
            }
        }
        None
    }

    fn check(&self, mount: &Mount) -> Result<(), Refusal> {
        let at = &mount.at;
        if at == "/" {
            return self.root(mount);
        }
        let around = self.around(at);
        let Some(around) = around.filter(|around| around.id == mount.parent) else {
            let found = format!("{at:?} on mount {}", mount.parent);
            return Err(self.refused(Rule::MountOrder, found, "mounts on the one around them"));
        };
        if let Some(spec) = self.allowed.mounts.iter().find(|spec| spec.is_at(at)) {
            return self.of_spec(mount, spec);
        }
        if mount.shared {
            return Err(self.refused(Rule::MountOptions, format!("{at:?} shared"), "it private"));
        }
        if self.allowed.masked.contains(at) {
            return self.mask(mount);
        }
        if self.allowed.readonly.contains(at) {
            return self.readonly(mount, around);
        }
        if self.allowed.terminal && at == "/dev/console" {
            return self.console(mount);
        }
        let hierarchy =
            self.allowed.mounts.iter().find(|spec| spec.is_at(&around.at) && spec.fstype == "cgroup");
        if let Some(spec) = hierarchy.filter(|_| mount.fstype == CGROUP) {
            self.external_only_as(mount, &[at.as_str()])?;
            return self.restricted(mount, spec, false);
        }
        Err(self.refused(Rule::Mount, format!("a mount at {at:?}"), "none there"))
    }

    fn root(&self, mount: &Mount) -> Result<(), Refusal> {
        self.external_only_as(mount, &["/"])?;
        if self.allowed.root_readonly && mount.flags & READ_ONLY == 0 {
            return Err(self.refused(Rule::MountOptions, "\"/\" writable".to_owned(), "it read-only"));
        }
        Ok(())
    }

    fn of_spec(&self, mount: &Mount, spec: &AllowedMount) -> Result<(), Refusal> {
        let at = &mount.at;
        if mount.shared && !spec.has("shared") && !spec.has("rshared") {
            return Err(self.refused(Rule::MountOptions, format!("{at:?} shared"), "it private"));
        }
        // With cgroup v1, runc mounts the folder of the hierarchies writable, whatever the spec has: an empty file system of the
        // container's own. The hierarchies in it have the options of the spec.
        let of_hierarchies = spec.fstype == "cgroup" && mount.is_tmpfs() && mount.external.is_none();
        self.restricted(mount, spec, of_hierarchies)?;
        if spec.is_bind() {
            if mount.external.is_none() {
                let found = format!("{:?} of device {:#x} at {at:?}", mount.root, mount.device);
                return Err(self.refused(Rule::MountSource, found, "what the destination mounts there"));
            }
            return self.external_only_as(mount, &[at.as_str(), spec.destination.as_str()]);
        }
        let cgroup = spec.fstype.starts_with("cgroup");
        let own = [at.as_str()];
        let keys: &[&str] = if cgroup { &own } else { &[] };
        self.external_only_as(mount, keys)?;
        if mount.external.is_none() && mount.root != "/" && !cgroup {
            let found = format!("{:?} of a file system at {at:?}", mount.root);
            return Err(self.refused(Rule::MountSource, found, "the whole of a new one"));
        }
        let fstypes: &[u32] = match spec.fstype.as_str() {
            "proc" => &[1],
            "sysfs" => &[2],
            "tmpfs" => &[TMPFS],
            "devpts" => &[DEVPTS],
            "mqueue" => &[14],
            "cgroup" => &[TMPFS, CGROUP, 23],
            "cgroup2" => &[23],
            _ => &[],
        };
        if fstypes.contains(&mount.fstype) {
            return Ok(());
        }
        Err(self.refused(Rule::MountType, format!("type {} at {at:?}", mount.fstype), &spec.fstype))
    }

    fn restricted(&self, mount: &Mount, spec: &AllowedMount, writable: bool) -> Result<(), Refusal> {
        for (option, flag) in RESTRICTIONS {
            if writable && flag == READ_ONLY {
                continue;
            }
            if spec.has(option) && mount.flags & flag == 0 {
                let found = format!("{:?} without {option}", mount.at);
                return Err(self.refused(Rule::MountOptions, found, "it with this option only"));
            }
        }
        Ok(())
    }

    fn external_only_as(&self, mount: &Mount, keys: &[&str]) -> Result<(), Refusal> {
        match &mount.external {
            Some(key) if !keys.contains(&key.as_str()) => {
                let found = format!("{key:?} of the node at {:?}", mount.at);
                Err(self.refused(Rule::MountSource, found, format!("{keys:?}")))
            }
            _ => Ok(()),
        }
    }

    /// runc masks a file with `/dev/null`, and a folder with an empty file system that is read-only.
    fn mask(&self, mount: &Mount) -> Result<(), Refusal> {
        let file = mount.external.as_deref().is_some_and(|key| key == NULL || key == mount.at);
        let folder = mount.external.is_none()
            && mount.fstype == TMPFS
            && mount.flags & READ_ONLY != 0
            && mount.root == "/";
        if file || folder {
            return Ok(());
        }
        let found = format!("{:?} as {:?} at {:?}", mount.root, mount.external, mount.at);
        Err(self.refused(Rule::MaskedPath, found, "nothing to be seen there"))
    }

    fn readonly(&self, mount: &Mount, around: &Mount) -> Result<(), Refusal> {
        let at = &mount.at;
        let itself = mount.external.is_none()
            && mount.device == around.device
            && below(&mount.root, &around.root).is_some_and(|below| path::join(&around.at, below) == *at);
        if itself && mount.flags & READ_ONLY != 0 {
            return Ok(());
        }
        let found = format!("{:?} with the flags {:#x} at {at:?}", mount.root, mount.flags);
        Err(self.refused(Rule::ReadonlyPath, found, "the path itself, read-only"))
    }

    fn console(&self, mount: &Mount) -> Result<(), Refusal> {
        let terminals = self.mounts.get("/dev/pts").map(|terminals| terminals.device);
        if mount.external.is_none() && mount.fstype == DEVPTS && terminals == Some(mount.device) {
            return Ok(());
        }
        let found = format!("{:?} at {:?}", mount.root, mount.at);
        Err(self.refused(Rule::MountSource, found, "a terminal of its own /dev/pts"))
    }

    /// All paths of the spec that must be masked or read-only.
    fn hidden(&self, paths: &[String], rule: Rule) -> Result<(), Refusal> {
        let missing = paths.iter().find(|path| {
            let read_only = |mount: &&Mount| rule == Rule::ReadonlyPath && mount.flags & READ_ONLY != 0;
            !self.mounts.contains_key(path.as_str()) && self.around(path).filter(read_only).is_none()
        });
        match missing {
            Some(path) => Err(self.refused(rule, format!("nothing mounted at {path:?}"), "it hidden")),
            None => Ok(()),
        }
    }
}
