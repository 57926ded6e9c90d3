//! The control groups a node lives in.
//!
//! A node gets a directory of its own in every hierarchy and becomes the root of a cgroup namespace there, so that each
//! kubelet finds and makes its own `/kubepods`.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Where processes of the node itself live under cgroup v2, which allows none beside inner groups.
const LEAF: &str = "init";

/// The hierarchies that are mounted on the host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Hierarchies {
    /// Version 1: controllers mounted one by one.
    V1(Vec<Hierarchy>),
    /// Version 2 alone.
    V2(PathBuf),
}

/// One mounted hierarchy of version 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hierarchy {
    mount: PathBuf,
    /// Mount options that name it: its controllers, or `name=systemd`.
    options: String,
}

impl Hierarchies {
    /// Reads the host's mounts.
    pub(crate) fn of_host() -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").context("cannot read /proc/self/mounts")?;
        Self::parse(&mounts)
    }

    fn parse(mounts: &str) -> Result<Self> {
        let mut v1: Vec<Hierarchy> = Vec::new();
        let mut v2 = None;
        for line in mounts.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let [_, mount, kind, options, ..] = fields[..] else { continue };
            match kind {
                "cgroup" => {
                    let options = naming_options(options);
                    if !v1.iter().any(|known| known.options == options) {
                        v1.push(Hierarchy { mount: mount.into(), options });
                    }
                }
                "cgroup2" => v2 = v2.or(Some(PathBuf::from(mount))),
                _ => {}
            }
        }
        let has =
            |controller| v1.iter().any(|known| known.options.split(',').any(|option| option == controller));
        match v2 {
            Some(mount) if !has("memory") => Ok(Hierarchies::V2(mount)),
            _ => {
                let missing: Vec<&str> = ["cpu", "cpuacct", "cpuset", "memory", "pids", "devices", "freezer"]
                    .into_iter()
                    .filter(|name| !has(name))
                    .collect();
                if !missing.is_empty() {
                    bail!(
                        "the kubelet needs the cgroup controllers {}, which are not mounted; mount cgroup2 on \
                         /sys/fs/cgroup, or each missing one with `mount -t cgroup -o NAME cgroup /sys/fs/cgroup/NAME`",
                        missing.join(", ")
                    );
                }
                Ok(Hierarchies::V1(v1))
            }
        }
    }

    /// Makes the directory `group` (`LAB/NODE`) in every hierarchy; returns the files through which a process enters.
    pub(crate) fn make(&self, group: &str) -> Result<Vec<PathBuf>> {
        let mut entries = Vec::new();
        match self {
            Hierarchies::V1(hierarchies) => {
                for hierarchy in hierarchies {
                    let dir = make_below(&hierarchy.mount, group, |parent, dir| {
                        if hierarchy.options.split(',').any(|option| option == "cpuset") {
                            // A new cpuset is empty and takes no process until it has both.
                            for file in ["cpuset.cpus", "cpuset.mems"] {
                                let value = fs::read_to_string(parent.join(file))?;
                                fs::write(dir.join(file), value.trim())?;
                            }
                            fs::write(dir.join("cgroup.clone_children"), "1")?;
                        }
                        Ok(())
                    })?;
                    entries.push(dir.join("cgroup.procs"));
                }
            }
            Hierarchies::V2(mount) => {
                let dir = make_below(mount, group, |parent, _| enable_controllers(parent))?;
                entries.push(dir.join("cgroup.procs"));
            }
        }
        Ok(entries)
    }

    /// Finishes the group once its namespace exists: version 2 allows no processes in a group that has inner ones with
    /// controllers, so they move into a leaf of it.
    pub(crate) fn settle(&self, group: &str) -> Result<()> {
        let Hierarchies::V2(mount) = self else { return Ok(()) };
        let dir = mount.join(group);
        let settle = || -> std::io::Result<()> {
            fs::create_dir_all(dir.join(LEAF))?;
            for pid in fs::read_to_string(dir.join("cgroup.procs"))?.lines() {
                fs::write(dir.join(LEAF).join("cgroup.procs"), pid)?;
            }
            enable_controllers(&dir)
        };
        settle().with_context(|| format!("cannot prepare cgroup {}", dir.display()))
    }

    /// The files through which a later process enters the group that [`make`](Self::make) made.
    pub(crate) fn entries(&self, group: &str) -> Vec<PathBuf> {
        match self {
            Hierarchies::V1(all) => {
                all.iter().map(|each| each.mount.join(group).join("cgroup.procs")).collect()
            }
            Hierarchies::V2(mount) => vec![mount.join(group).join(LEAF).join("cgroup.procs")],
        }
    }

    /// What the node mounts below `/sys/fs/cgroup`, as words `DIRECTORY:OPTIONS`; one word `v2` for version 2.
    pub(crate) fn mounts_in_node(&self) -> String {
        match self {
            Hierarchies::V2(_) => "v2".to_owned(),
            Hierarchies::V1(all) => {
                let word = |each: &Hierarchy| {
                    format!("{}:{}", each.options.trim_start_matches("name="), each.options)
                };
                all.iter().map(word).collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// Lets frozen processes of the group run again: a frozen one does not die.
    pub(crate) fn thaw(&self, group: &str) {
        if let Hierarchies::V1(all) = self {
            for freezer in all.iter().filter(|each| each.options.split(',').any(|option| option == "freezer"))
            {
                visit(&freezer.mount.join(group), &mut |dir| {
                    // Only a frozen group needs it; one that vanishes meanwhile needs nothing.
                    let _ = fs::write(dir.join("freezer.state"), "THAWED");
                });
            }
        }
    }

    /// Host process ids of all processes in the group and below it.
    pub(crate) fn processes(&self, group: &str) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        for mount in self.mounts() {
            visit(&mount.join(group), &mut |dir| {
                let listed = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
                found.extend(
                    listed.lines().filter_map(|line| line.parse::<u32>().ok()).filter(|pid| *pid > 0),
                );
            });
        }
        found
    }

    fn mounts(&self) -> Vec<&Path> {
        match self {
            Hierarchies::V1(all) => all.iter().map(|each| each.mount.as_path()).collect(),
            Hierarchies::V2(mount) => vec![mount],
        }
    }

    /// Removes the group and all below it, waiting for processes that are still dying.
    pub(crate) fn remove(&self, group: &str, limit: Duration) -> Result<()> {
        let start = Instant::now();
        for mount in self.mounts() {
            let top = mount.join(group);
            while top.exists() {
                let mut refused = None;
                visit(&top, &mut |dir| {
                    if let Err(error) = fs::remove_dir(dir)
                        && error.kind() != ErrorKind::NotFound
                    {
                        refused.get_or_insert_with(|| (dir.to_owned(), error));
                    }
                });
                if let Some((dir, error)) = refused {
                    if start.elapsed() > limit {
                        let left = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
                        return Err(error).with_context(|| {
                            format!(
                                "cannot remove cgroup {} (processes in it: {:?})",
                                dir.display(),
                                left.trim()
                            )
                        });
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
        Ok(())
    }
}

/// Calls `act` for every directory at and below `dir`, the deepest first.
fn visit(dir: &Path, act: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            visit(&entry.path(), act);
        }
    }
    if dir.exists() {
        act(dir);
    }
}

fn make_below(
    mount: &Path,
    group: &str,
    set_up: impl Fn(&Path, &Path) -> std::io::Result<()>,
) -> Result<PathBuf> {
    let mut dir = mount.to_owned();
    for part in Path::new(group) {
        let parent = dir.clone();
        dir.push(part);
        match fs::create_dir(&dir) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => set_up(&parent, &dir),
        }
        .with_context(|| format!("cannot make cgroup {}", dir.display()))?;
    }
    Ok(dir)
}

/// Passes every controller a version 2 group has on to its children.
fn enable_controllers(dir: &Path) -> std::io::Result<()> {
    for controller in fs::read_to_string(dir.join("cgroup.controllers"))?.split_whitespace() {
        fs::write(dir.join("cgroup.subtree_control"), format!("+{controller}"))?;
    }
    Ok(())
}

/// Of a version 1 mount's options, those that say which hierarchy it is.
fn naming_options(options: &str) -> String {
    let generic = [
        "rw",
        "ro",
        "nosuid",
        "nodev",
        "noexec",
        "relatime",
        "noatime",
        "xattr",
        "clone_children",
        "noprefix",
    ];
    options
        .split(',')
        .filter(|option| !generic.contains(option) && !option.starts_with("release_agent="))
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separate_controllers_beside_an_empty_unified_hierarchy_are_version_1() {
        let names = ["cpu,cpuacct", "cpuset,clone_children", "memory", "pids", "devices", "freezer"];
        let mut mounts = String::from("cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n");
        for name in names {
            mounts += &format!("cgroup /sys/fs/cgroup/{name} cgroup rw,nosuid,relatime,{name} 0 0\n");
        }
        mounts += "cgroup /sys/fs/cgroup/systemd cgroup rw,xattr,release_agent=/x,name=systemd 0 0\n";
        let found = Hierarchies::parse(&mounts).unwrap();
        assert_eq!(
            found.mounts_in_node(),
            "cpu,cpuacct:cpu,cpuacct cpuset:cpuset memory:memory pids:pids devices:devices freezer:freezer \
             systemd:name=systemd"
        );
    }

    #[test]
    fn version_2_alone() {
        let found = Hierarchies::parse("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n").unwrap();
        assert_eq!(found, Hierarchies::V2("/sys/fs/cgroup".into()));
        assert_eq!(found.entries("lab/n"), [PathBuf::from("/sys/fs/cgroup/lab/n/init/cgroup.procs")]);
    }

    #[test]
    fn processes_of_version_2_settle_in_a_leaf_and_are_found_there() {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let unified = mounts
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>())
            .find(|fields| fields[2] == "cgroup2");
        let (true, Some(unified)) = (nix::unistd::geteuid().is_root(), unified) else {
            eprintln!("SKIPPED: needs root and a cgroup2 mount");
            return;
        };
        let hierarchies = Hierarchies::V2(unified[1].into());
        let group = format!("portolan-lab-test-{}/node", std::process::id());
        let entries = hierarchies.make(&group).unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        fs::write(&entries[0], child.id().to_string()).unwrap();
        hierarchies.settle(&group).unwrap();
        let settled = fs::read_to_string(&hierarchies.entries(&group)[0]).unwrap();
        let found = hierarchies.processes(&group);
        child.kill().unwrap();
        child.wait().unwrap();
        hierarchies.remove(group.split('/').next().unwrap(), Duration::from_secs(10)).unwrap();
        assert_eq!(settled.trim(), child.id().to_string());
        assert_eq!(found, BTreeSet::from([child.id()]));
    }

    #[test]
    fn missing_controllers_are_named() {
        let error = Hierarchies::parse("cgroup /c cgroup rw,memory,cpu 0 0\n").unwrap_err().to_string();
        assert!(error.contains("cpuacct, cpuset, pids"), "{error}");
    }
}
