//! What the lab needs of the machine, checked before anything is started.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::parts;
use crate::state::MachineSize;

/// Programs of the host that the lab runs, and the Debian package of each.
const TOOLS: [(&str, &str); 7] = [
    ("ip", "iproute2"),
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("setsid", "util-linux"),
    ("mount", "mount"),
    ("pivot_root", "util-linux"),
    ("chroot", "coreutils"),
];

/// How many inotify instances etcd, API server, controller manager and scheduler take.
const INOTIFY_OF_CONTROL_PLANE: u32 = 11;
/// How many inotify instances containerd, kubelet and proxy take.
const INOTIFY_OF_NODE: u32 = 9;

/// Says everything that is missing, and how to get it.
pub(crate) fn check() -> Result<()> {
    let mut missing: Vec<String> = match parts::preconditions() {
        Ok(()) => Vec::new(),
        Err(missing) => missing.iter().map(ToString::to_string).collect(),
    };
    for (tool, package) in TOOLS {
        if !is_in_path(tool) {
            missing.push(format!("no `{tool}` in PATH: install it (apt-get install {package})"));
        }
    }
    if !Path::new("/proc/sys/net/bridge/bridge-nf-call-iptables").exists() {
        missing.push("the kernel does not filter bridged packets: run `modprobe br_netfilter`".to_owned());
    }
    if !missing.is_empty() {
        bail!("the lab cannot run on this machine:\n  - {}", missing.join("\n  - "));
    }
    Ok(())
}

/// Sees to it that the kernel lets the lab's programs watch files: where it does not, they fail in ways that tell little.
pub(crate) fn check_inotify(control_planes: u32, nodes: u32) -> Result<()> {
    let path = "/proc/sys/fs/inotify/max_user_instances";
    let limit: u32 =
        fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?.trim().parse()?;
    let needed = control_planes * INOTIFY_OF_CONTROL_PLANE + nodes * INOTIFY_OF_NODE;
    let used = inotify_instances_of_root();
    if used + needed <= limit {
        return Ok(());
    }
    let enough = (used + needed).next_power_of_two().max(1024);
    fs::write(path, enough.to_string()).with_context(|| {
        format!(
            "root may have {limit} inotify instances and uses {used}; the lab needs {needed} more: \
             run `sysctl -w fs.inotify.max_user_instances={enough}`"
        )
    })?;
    eprintln!("lab: fs.inotify.max_user_instances is {enough} from now on, it was {limit}");
    Ok(())
}

/// What a kubelet finds on this host.
pub(crate) fn size() -> Result<MachineSize> {
    let read = |path: &str| fs::read_to_string(path).with_context(|| format!("cannot read {path}"));
    let processors = read("/proc/cpuinfo")?.lines().filter(|line| line.starts_with("processor")).count();
    let memory = read("/proc/meminfo")?
        .lines()
        .find_map(|line| {
            line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        })
        .context("/proc/meminfo has no MemTotal")?;
    Ok(MachineSize { millicpus: processors as u64 * 1000, memory: memory * 1024 })
}

impl MachineSize {
    /// What is left of this when a machine of another size is taken from it.
    pub(crate) fn beyond(&self, machine: &MachineSize) -> Result<MachineSize> {
        let left = self.millicpus.checked_sub(machine.millicpus).zip(self.memory.checked_sub(machine.memory));
        let (millicpus, memory) = left.with_context(|| {
            format!("a machine of {machine:?} does not fit on this host, which has {self:?}")
        })?;
        Ok(MachineSize { millicpus, memory })
    }
}

fn inotify_instances_of_root() -> u32 {
    let mut count = 0;
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let of_root = process.metadata().is_ok_and(|process| process.uid() == 0);
        let open = if of_root { fs::read_dir(process.path().join("fd")).ok() } else { None };
        for file in open.into_iter().flatten().flatten() {
            count += u32::from(
                fs::read_link(file.path()).is_ok_and(|target| target == Path::new("anon_inode:inotify")),
            );
        }
    }
    count
}

fn is_in_path(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(tool).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_no_larger_than_its_host() {
        let host = MachineSize { millicpus: 2000, memory: 8 << 30 };
        let small = MachineSize { millicpus: 500, memory: 1 << 30 };
        assert_eq!(host.beyond(&small).unwrap(), MachineSize { millicpus: 1500, memory: 7 << 30 });
        let error = small.beyond(&host).unwrap_err().to_string();
        assert!(error.contains("does not fit on this host"), "{error}");
        assert!(size().unwrap().millicpus >= 1000);
    }
}
