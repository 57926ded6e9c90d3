//! What the admitted pod spec allows, as the destination's own container runtime wrote it.

use super::capability::CapabilitySet;
use super::namespace::Namespace;
use std::collections::{BTreeMap, BTreeSet};

/// What the container may have: the content of the OCI `config.json` that the destination's container runtime made from the
/// admitted pod.
#[derive(Clone, Debug)]
pub struct Allowed {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) groups: BTreeSet<u32>,
    pub(super) capabilities: Capabilities,
    pub(super) no_new_privileges: bool,
    pub(super) seccomp: bool,
    pub(super) seccomp_programs: Vec<Vec<u8>>,
    /// With the path of the one that it joins.
    pub(super) namespaces: BTreeMap<Namespace, Option<String>>,
    pub(super) uid_map: Vec<Extent>,
    pub(super) gid_map: Vec<Extent>,
    pub(super) mounts: Vec<AllowedMount>,
    pub(super) root_readonly: bool,
    pub(super) apparmor: Option<String>,
    pub(super) selinux: Option<String>,
    pub(super) masked: Vec<String>,
    pub(super) readonly: Vec<String>,
    pub(super) terminal: bool,
    pub(super) source_cgroup: Option<String>,
    /// The least that a process may have.
    pub(super) oom_score_adj: i32,
    /// Hard limits by their names.
    pub(super) limits: BTreeMap<&'static str, u64>,
}

/// The sets of capabilities. What is permitted may be made effective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Capabilities {
    pub(super) bounding: CapabilitySet,
    pub(super) permitted: CapabilitySet,
    pub(super) inheritable: CapabilitySet,
    pub(super) ambient: CapabilitySet,
}

/// A range of IDs of a user namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) inside: u32,
    pub(super) outside: u32,
    pub(super) count: u32,
}

/// A mount of the spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AllowedMount {
    pub(super) destination: String,
    /// Where it is if links of the container's root lead there.
    pub(super) resolved: String,
    pub(super) fstype: String,
    pub(super) options: BTreeSet<String>,
}

impl AllowedMount {
    pub(super) fn is_bind(&self) -> bool {
        self.fstype == "bind" || self.has("bind") || self.has("rbind")
    }

    pub(super) fn has(&self, option: &str) -> bool {
        self.options.contains(option)
    }

    pub(super) fn is_at(&self, path: &str) -> bool {
        self.destination == path || self.resolved == path
    }
}

impl Allowed {
    /// Requires these programs of seccomp (as `seccomp.img` has them: eight bytes an instruction) in every thread. Without them
    /// a thread needs a filter that restricts something, and its instructions are not compared.
    #[must_use]
    pub fn with_seccomp_programs(mut self, programs: Vec<Vec<u8>>) -> Self {
        self.seccomp_programs = programs;
        self
    }

    /// Requires that all cgroups of the checkpoint are this one of the source, or lie in it.
    #[must_use]
    pub fn with_source_cgroup(mut self, path: &str) -> Self {
        self.source_cgroup = Some(path.to_owned());
        self
    }

    /// Says where the mounts of the spec are after the links in the container's root: `/run/x` for `/var/run/x`, if `/var/run`
    /// is a link there. Without it, this link alone is known.
    pub fn resolve_mounts(&mut self, mut resolve: impl FnMut(&str) -> Option<String>) {
        for mount in &mut self.mounts {
            if let Some(resolved) = resolve(&mount.destination) {
                mount.resolved = resolved;
            }
        }
    }

    /// Removes the masked and read-only paths of `/proc` and `/sys` that this kernel does not have: runc leaves them out too.
    pub fn without_absent_paths(&mut self, exists: impl Fn(&str) -> bool) {
        let kept = |path: &String| {
            let of_kernel = path.starts_with("/proc/") || path.starts_with("/sys/");
            !of_kernel || exists(path.as_str())
        };
        self.masked.retain(kept);
        self.readonly.retain(kept);
    }

    /// Whether a process may become another user: with `CAP_SETUID` in the bounding set, if it can get it from there. A process
    /// that is not root and may not gain privileges cannot.
    pub(super) fn may_change_uid(&self) -> bool {
        self.can_get(CapabilitySet::SETUID)
    }

    pub(super) fn may_change_gid(&self) -> bool {
        self.can_get(CapabilitySet::SETGID)
    }

    pub(super) fn can_get(&self, capability: CapabilitySet) -> bool {
        let Capabilities { bounding, ambient, .. } = self.capabilities;
        bounding.contains(capability)
            && (self.uid == 0 || !self.no_new_privileges || ambient.contains(capability))
    }

    /// What a process may have permitted: the spec's set; for a process that is not root and may not gain privileges, the
    /// ambient ones of it, since the others are lost when it is started.
    pub(super) fn permitted(&self) -> CapabilitySet {
        let Capabilities { permitted, ambient, .. } = self.capabilities;
        if self.uid == 0 || !self.no_new_privileges { permitted } else { permitted.intersection(ambient) }
    }
}
