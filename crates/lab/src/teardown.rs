//! Clearing a lab away: processes, links, cgroups and files, whatever state it is in.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cgroup::Hierarchies;
use crate::process;
use crate::state::{self, Traces};
use crate::switch;

const LIMIT: Duration = Duration::from_secs(120);

/// Clears the lab `name` away. What is already gone is no error; what cannot be removed is.
pub fn down(name: &str) -> Result<()> {
    let dir = state::dir_of(name)?;
    if !dir.exists() {
        bail!("there is no lab named {name:?} in {}", state::root()?.display());
    }
    let traces = Traces::read(name)?;
    let hierarchies = Hierarchies::of_host()?;
    let group = traces.as_ref().map(Traces::cgroup);
    if let Some(group) = &group {
        hierarchies.thaw(group);
    }
    // With the last process go namespaces, mounts and the links in them.
    end_processes(&dir, || {
        let mut left: BTreeSet<u32> = process::of_lab(&dir).into_iter().collect();
        left.extend(group.iter().flat_map(|group| hierarchies.processes(group)));
        left
    })?;
    if let Some(traces) = &traces {
        switch::remove_host_link(&traces.host_link())?;
        hierarchies.remove(&traces.cgroup(), LIMIT)?;
    }
    refuse_mounts(&dir)?;
    match fs::remove_dir_all(&dir) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", dir.display()))
        }
        _ => Ok(()),
    }
}

/// Clears away the labs whose owner died without doing so; returns their names.
pub fn sweep() -> Result<Vec<String>> {
    // Two processes that start at the same time must not both clear the same lab away.
    let _lock = state::lock()?;
    let mut swept = Vec::new();
    for name in state::names()? {
        let abandoned = state::owner(&name)?.is_some_and(|owner| !owner.is_alive());
        if abandoned {
            down(&name).with_context(|| format!("cannot clear away the abandoned lab {name}"))?;
            swept.push(name);
        }
    }
    Ok(swept)
}

fn end_processes(dir: &Path, left: impl Fn() -> BTreeSet<u32>) -> Result<()> {
    let start = Instant::now();
    loop {
        let left = left();
        if left.is_empty() {
            return Ok(());
        }
        if start.elapsed() > LIMIT {
            bail!("the processes {left:?} of {} do not die: are they stuck in the kernel?", dir.display());
        }
        for pid in left {
            // One that has died meanwhile is as good.
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// All mounts of a lab live in namespaces of their own; deleting through one that does not could delete anything.
fn refuse_mounts(dir: &Path) -> Result<()> {
    let mounts = fs::read_to_string("/proc/self/mounts").context("cannot read /proc/self/mounts")?;
    let below = |mount: &&str| Path::new(mount).starts_with(dir);
    if let Some(mount) = mounts.lines().filter_map(|line| line.split(' ').nth(1)).find(below) {
        bail!("{mount} is mounted inside the lab; unmount it and run `lab down` again");
    }
    Ok(())
}
