//! Ending a restore in the middle, with all that it has begun.
//!
//! runc starts CRIU, CRIU starts its script and makes the processes of the container, which stand still until all of them are
//! whole. Without runc and the wrapper none of them would ever end.

use super::freeze::Hierarchies;
use super::{Bundle, Create, Invocation, Settings};
use crate::freezer::{CgroupFiles, Kernel};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

/// How often it is looked whether all processes are gone.
const LOOKS: u32 = 250;

/// What is known of a container that is being restored.
pub(super) struct Begun<'a> {
    invocation: &'a Invocation,
    create: &'a Create,
    settings: &'a Settings,
    /// Where its processes are.
    cgroups: Vec<PathBuf>,
}

impl<'a> Begun<'a> {
    pub(super) fn new(
        invocation: &'a Invocation,
        create: &'a Create,
        settings: &'a Settings,
        bundle: &Bundle,
        hierarchies: &Hierarchies,
        id: &str,
    ) -> Self {
        let path = bundle.cgroup();
        let of = |kind: &str| hierarchies.folder(&format!("{kind}:{}", path.as_deref()?), id).ok();
        let cgroups = ["freezer", "unified"].into_iter().filter_map(of).map(|(_, folder)| folder).collect();
        Self { invocation, create, settings, cgroups }
    }

    /// Kills runc with its group, then what is in the container's cgroup, and removes what runc keeps of the container. What
    /// cannot be ended here ends with the pod.
    pub(super) fn end(&self, runc: &mut Child) {
        kill_group(runc);
        self.cgroups.iter().for_each(|cgroup| self.empty(cgroup));
        self.delete();
    }

    /// Removes what runc keeps of the container. That must not hang for longer than the restore.
    fn delete(&self) {
        let mut words = self.invocation.global.clone();
        words.extend(["delete".into(), "--force".into(), self.create.id.clone()]);
        let mut command = Command::new(&self.settings.runc);
        let Ok(mut runc) = command.args(words).stdin(Stdio::null()).process_group(0).spawn() else { return };
        for _ in 0..self.settings.looks() / 10 {
            if !matches!(runc.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(self.settings.pause);
        }
        kill_group(&mut runc);
    }

    /// Kills all processes of a cgroup, also those that are frozen.
    fn empty(&self, cgroup: &Path) {
        let mut killed = BTreeSet::new();
        for _ in 0..LOOKS {
            let mut found = BTreeSet::new();
            processes(cgroup, &mut found);
            if found.is_empty() {
                return;
            }
            for process in found.difference(&killed) {
                let _ = kill(Pid::from_raw(*process), Signal::SIGKILL);
            }
            killed.extend(found);
            // A frozen process of cgroup v1 ends only once it may go on; with the signal before, it does nothing else.
            for (file, text) in [("freezer.state", "THAWED"), ("cgroup.freeze", "0")] {
                let _ = Kernel.write(&cgroup.join(file), text);
            }
            thread::sleep(self.settings.pause);
        }
    }
}

/// Kills a child with its group, which it leads.
fn kill_group(child: &mut Child) {
    if let Ok(group) = i32::try_from(child.id())
        && group > 1
    {
        // It may have ended by itself meanwhile, which is as well.
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
    let _ = child.wait();
}

/// The processes in a cgroup, and in those in it.
fn processes(cgroup: &Path, found: &mut BTreeSet<i32>) {
    let own = i32::try_from(std::process::id()).ok();
    let list = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
    let others = list.lines().filter_map(|line| line.trim().parse().ok());
    found.extend(others.filter(|process| *process > 1 && Some(*process) != own));
    for entry in fs::read_dir(cgroup).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            processes(&entry.path(), found);
        }
    }
}
