//! Sets of capabilities.

use std::fmt;

const NAMES: [&str; 41] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETPCAP",
    "CAP_LINUX_IMMUTABLE",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_BROADCAST",
    "CAP_NET_ADMIN",
    "CAP_NET_RAW",
    "CAP_IPC_LOCK",
    "CAP_IPC_OWNER",
    "CAP_SYS_MODULE",
    "CAP_SYS_RAWIO",
    "CAP_SYS_CHROOT",
    "CAP_SYS_PTRACE",
    "CAP_SYS_PACCT",
    "CAP_SYS_ADMIN",
    "CAP_SYS_BOOT",
    "CAP_SYS_NICE",
    "CAP_SYS_RESOURCE",
    "CAP_SYS_TIME",
    "CAP_SYS_TTY_CONFIG",
    "CAP_MKNOD",
    "CAP_LEASE",
    "CAP_AUDIT_WRITE",
    "CAP_AUDIT_CONTROL",
    "CAP_SETFCAP",
    "CAP_MAC_OVERRIDE",
    "CAP_MAC_ADMIN",
    "CAP_SYSLOG",
    "CAP_WAKE_ALARM",
    "CAP_BLOCK_SUSPEND",
    "CAP_AUDIT_READ",
    "CAP_PERFMON",
    "CAP_BPF",
    "CAP_CHECKPOINT_RESTORE",
];

/// A set of capabilities, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CapabilitySet(pub(super) u64);

impl CapabilitySet {
    pub(super) const SETGID: Self = Self(1 << 6);
    pub(super) const SETUID: Self = Self(1 << 7);
    pub(super) const SETPCAP: Self = Self(1 << 8);
    pub(super) const NET_RAW: Self = Self(1 << 13);
    pub(super) const SYS_ADMIN: Self = Self(1 << 21);
    pub(super) const SYS_NICE: Self = Self(1 << 23);
    pub(super) const SYS_RESOURCE: Self = Self(1 << 24);

    /// The set of one capability, if it is known.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().position(|known| *known == name).map(|bit| Self(1 << bit))
    }

    pub(super) const fn contains(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    pub(super) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl fmt::Display for CapabilitySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("no capability");
        }
        for (index, bit) in (0..64).filter(|bit| (self.0 >> bit) & 1 == 1).enumerate() {
            let separator = if index == 0 { "" } else { " " };
            match NAMES.get(bit) {
                Some(name) => write!(f, "{separator}{name}")?,
                None => write!(f, "{separator}CAP_{bit}")?,
            }
        }
        Ok(())
    }
}
