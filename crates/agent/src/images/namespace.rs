//! The kinds of namespaces.

/// A kind of namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Namespace {
    Pid,
    Network,
    Ipc,
    Uts,
    Mount,
    User,
    Cgroup,
    Time,
}

impl Namespace {
    pub(super) const ALL: [Self; 8] =
        [Self::Pid, Self::Network, Self::Ipc, Self::Uts, Self::Mount, Self::User, Self::Cgroup, Self::Time];

    /// What the OCI runtime specification calls it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Pid => "pid",
            Self::Network => "network",
            Self::Ipc => "ipc",
            Self::Uts => "uts",
            Self::Mount => "mount",
            Self::User => "user",
            Self::Cgroup => "cgroup",
            Self::Time => "time",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|namespace| namespace.name() == name)
    }

    /// The field of `task_kobj_ids_entry` that has its number.
    pub(super) const fn field(self) -> u32 {
        match self {
            Self::Pid => 5,
            Self::Network => 6,
            Self::Ipc => 7,
            Self::Uts => 8,
            Self::Mount => 9,
            Self::User => 10,
            Self::Cgroup => 11,
            Self::Time => 12,
        }
    }

    /// Which one runc names in the image if the container joins another one's, and CRIU then leaves as it is.
    pub(super) const fn external_key(self) -> Option<&'static str> {
        match self {
            Self::Network => Some("extRootNetNS"),
            Self::Pid => Some("extRootPidNS"),
            _ => None,
        }
    }
}
