//! What a lab adds to the machine, and that it is gone afterwards.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use portolan_lab::{Cluster, Lab};

/// The machine as others than labs see it. Other labs may come and go meanwhile, so theirs is left out.
#[derive(Debug, PartialEq)]
pub(crate) struct Snapshot {
    network_namespaces: String,
    mounts: String,
    interfaces: BTreeSet<String>,
    cgroups: BTreeSet<PathBuf>,
    sysctls: Vec<String>,
}

/// What the machine was like before a lab, and what the lab added.
pub(crate) struct Lived {
    before: Snapshot,
    dir: PathBuf,
    link: PathBuf,
    cgroup: String,
    processes: BTreeSet<(u32, String)>,
}

impl Snapshot {
    pub(crate) fn take() -> Result<Self> {
        let listed = Command::new("ip").args(["netns", "list"]).output()?;
        let names = |dir: &str, others: &str| -> Result<BTreeSet<String>> {
            let mut names = BTreeSet::new();
            for entry in fs::read_dir(dir)? {
                names.insert(entry?.file_name().to_string_lossy().into_owned());
            }
            Ok(names.into_iter().filter(|name| !name.starts_with(others)).collect())
        };
        let sysctls = ["kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory", "net/ipv4/ip_forward"];
        Ok(Snapshot {
            network_namespaces: String::from_utf8_lossy(&listed.stdout).into_owned(),
            mounts: fs::read_to_string("/proc/self/mounts")?,
            interfaces: names("/sys/class/net", "plab")?,
            cgroups: cgroups_named(|name| !name.starts_with("portolan-lab-"))?,
            sysctls: sysctls
                .iter()
                .map(|name| fs::read_to_string(Path::new("/proc/sys").join(name)))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Notes what `lab` has added to the machine, and that it has added all that it should.
    pub(crate) fn of_lab(self, lab: &Lab) -> Result<Lived> {
        let lived = Lived {
            before: self,
            dir: lab.state().dir()?,
            link: Path::new("/sys/class/net").join(format!("plab{}", lab.state().slot)),
            cgroup: format!("portolan-lab-{}-{}", lab.state().slot, lab.name()),
            processes: processes_of(&format!("portolan-lab-{}-{}", lab.state().slot, lab.name()))?,
        };
        let nodes = lab.clusters().iter().flat_map(Cluster::nodes).count();
        ensure!(lived.link.exists(), "{} is not there", lived.link.display());
        ensure!(!cgroups_named(|name| name == lived.cgroup)?.is_empty(), "no cgroup {}", lived.cgroup);
        ensure!(lived.processes.len() > 8 * nodes, "only {} processes", lived.processes.len());
        Ok(lived)
    }
}

impl Lived {
    pub(crate) fn assert_gone(&self) -> Result<()> {
        ensure!(!self.dir.exists(), "{} is still there", self.dir.display());
        ensure!(!self.link.exists(), "{} is still there", self.link.display());
        let cgroups = cgroups_named(|name| name == self.cgroup)?;
        ensure!(cgroups.is_empty(), "cgroups are still there: {cgroups:?}");
        let alive = |(pid, started): &&(u32, String)| start_of(*pid).as_ref() == Some(started);
        let left: Vec<_> = self.processes.iter().filter(alive).collect();
        ensure!(left.is_empty(), "processes are still there: {left:?}");
        let now = Snapshot::take()?;
        ensure!(now == self.before, "the machine was\n{:?}\nand is now\n{now:?}", self.before);
        Ok(())
    }
}

/// Ends as a crash ends: the lab's value is never dropped, some of its processes are dead, and its owner is no more.
pub(crate) fn crash(lab: Lab) -> Result<()> {
    let dir = lab.state().dir()?;
    let node = lab.clusters()[0].nodes()[1].dir().to_owned();
    std::mem::forget(lab);
    for file in [dir.join("switch.pid"), node.join("init.pid")] {
        let pid: i32 =
            fs::read_to_string(&file)?.trim().parse().with_context(|| file.display().to_string())?;
        kill(Pid::from_raw(pid), Signal::SIGKILL)?;
    }
    let file = dir.join("lab.json");
    let mut state: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
    state["owner"]["start_time"] = 1.into();
    fs::write(&file, state.to_string())?;
    Ok(())
}

/// Every process in a cgroup of this name or below it, with the time it was started.
fn processes_of(cgroup: &str) -> Result<BTreeSet<(u32, String)>> {
    let mut found = BTreeSet::new();
    for dir in cgroups_named(|name| name == cgroup)? {
        collect_processes(&dir, &mut found);
    }
    Ok(found)
}

fn collect_processes(dir: &Path, found: &mut BTreeSet<(u32, String)>) {
    let listed = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    found.extend(
        listed.lines().filter_map(|line| line.parse().ok()).filter_map(|pid| Some((pid, start_of(pid)?))),
    );
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect_processes(&entry.path(), found);
        }
    }
}

/// The start time of a process that is not a zombie.
fn start_of(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if *fields.first()? == "Z" { None } else { fields.get(19).map(|started| (*started).to_owned()) }
}

/// Top-level cgroups of all hierarchies whose name is wanted.
fn cgroups_named(wanted: impl Fn(&str) -> bool) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let hierarchies = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    for hierarchy in hierarchies.filter(|fields| fields.get(2).is_some_and(|kind| kind.starts_with("cgroup")))
    {
        for entry in fs::read_dir(hierarchy[1])? {
            let entry = entry?;
            if entry.file_type()?.is_dir() && wanted(&entry.file_name().to_string_lossy()) {
                found.insert(entry.path());
            }
        }
    }
    Ok(found)
}
