//! What the lab needs of the machine at run time, checked before anything is started.

use std::path::Path;

use anyhow::{Result, bail};

use crate::cgroup::Hierarchies;
use crate::parts;

/// Says everything that is missing, and how to get it.
pub(crate) fn check() -> Result<()> {
    let mut missing: Vec<String> = match parts::preconditions() {
        Ok(()) => Vec::new(),
        Err(missing) => missing.iter().map(ToString::to_string).collect(),
    };
    if !Path::new("/proc/sys/net/bridge/bridge-nf-call-iptables").exists() {
        missing.push("the kernel module br_netfilter: run `modprobe br_netfilter`".to_owned());
    }
    if let Err(error) = Hierarchies::of_host() {
        missing.push(format!("{error:#}"));
    }
    if !missing.is_empty() {
        bail!("the lab cannot run on this machine; what is missing:\n  - {}", missing.join("\n  - "));
    }
    Ok(())
}
