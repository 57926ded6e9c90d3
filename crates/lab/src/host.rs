//! What the lab needs of the machine, checked before anything is started.

use std::path::Path;

use anyhow::{Result, bail};

use crate::parts;

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

fn is_in_path(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(tool).is_file())
}
