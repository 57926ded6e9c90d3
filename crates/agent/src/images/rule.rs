//! The rules that a checkpoint must follow, with what helps if it breaks one.

use std::fmt;

/// A rule that a checkpoint must follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// User IDs: the one of the spec, unless its capabilities allow changing it.
    Uid,
    /// Group IDs: likewise.
    Gid,
    /// Supplementary groups: likewise.
    Groups,
    /// The bounding set.
    BoundingCapabilities,
    /// The permitted set.
    PermittedCapabilities,
    /// The effective set.
    EffectiveCapabilities,
    /// The inheritable set.
    InheritableCapabilities,
    /// The ambient set.
    AmbientCapabilities,
    /// Secure bits.
    SecureBits,
    /// No new privileges.
    NoNewPrivileges,
    /// Seccomp mode.
    SeccompMode,
    /// Seccomp filter.
    SeccompFilter,
    /// LSM profile.
    LsmProfile,
    /// Scheduling above others.
    Scheduling,
    /// Which process is ended when memory runs out.
    OomScore,
    /// Limits of resources.
    ResourceLimits,
    /// Namespaces: where the spec has one, the process is in one of its own.
    Namespace,
    /// User namespace.
    UserNamespace,
    /// Namespaces that the container joins.
    JoinedNamespace,
    /// Mounts: only those of the spec.
    Mount,
    /// Mounts of files of the node are given by the destination.
    MountSource,
    /// Types of mounts.
    MountType,
    /// Options of mounts.
    MountOptions,
    /// Nothing is mounted over another mount, or hides it.
    MountOrder,
    /// Masked paths.
    MaskedPath,
    /// Read-only paths.
    ReadonlyPath,
    /// Types of open files.
    FileType,
    /// Open files lie in mounts of the container.
    FilePath,
    /// Files that others refer to.
    FileReference,
    /// Unix sockets.
    UnixSocket,
    /// Terminals.
    Terminal,
    /// Deleted files.
    GhostFile,
    /// Cgroups.
    Cgroup,
}

impl Rule {
    const fn texts(self) -> (&'static str, &'static str) {
        const USER: &str =
            "set securityContext.runAsUser and runAsGroup as on the source, or start a new pod";
        const CAPABILITIES: &str =
            "set securityContext.capabilities as on the source if the pod may have them, or start a new pod";
        const SECURITY: &str = "set securityContext as on the source, or start a new pod";
        const MOUNTS: &str = "give the pod the mounts that it had on the source, or start a new pod";
        const FILES: &str = "close the file before the migration, or start a new pod";
        const FRESH: &str = "make the checkpoint with runc from a running pod, or start a new pod";
        match self {
            Self::Uid => ("user ID", USER),
            Self::Gid => ("group ID", USER),
            Self::Groups => {
                ("supplementary groups", "set securityContext.supplementalGroups as on the source")
            }
            Self::BoundingCapabilities => ("bounding capabilities", CAPABILITIES),
            Self::PermittedCapabilities => ("permitted capabilities", CAPABILITIES),
            Self::EffectiveCapabilities => ("effective capabilities", CAPABILITIES),
            Self::InheritableCapabilities => ("inheritable capabilities", CAPABILITIES),
            Self::AmbientCapabilities => ("ambient capabilities", CAPABILITIES),
            Self::SecureBits => ("secure bits", CAPABILITIES),
            Self::NoNewPrivileges => {
                ("no new privileges", "set allowPrivilegeEscalation as on the source, or start a new pod")
            }
            Self::SeccompMode => {
                ("seccomp mode", "set seccompProfile on the source too, and start the pod there anew")
            }
            Self::SeccompFilter => {
                ("seccomp filter", "use the same seccompProfile on both nodes, or start a new pod")
            }
            Self::LsmProfile => {
                ("LSM profile", "use the same AppArmor profile or SELinux label on both nodes")
            }
            Self::Scheduling => ("scheduling", SECURITY),
            Self::OomScore => {
                ("OOM score", "give the pod the requests that it had on the source, or start a new pod")
            }
            Self::ResourceLimits => {
                ("resource limits", "set the limits of the container runtime as on the source")
            }
            Self::Namespace => ("namespace", "set hostNetwork, hostPID and hostIPC as on the source"),
            Self::UserNamespace => {
                ("user namespace", "set hostUsers as on the source, with the same range of IDs")
            }
            Self::JoinedNamespace => ("joined namespace", FRESH),
            Self::Mount => ("mount", MOUNTS),
            Self::MountSource => ("source of a mount", FRESH),
            Self::MountType => ("type of a mount", MOUNTS),
            Self::MountOptions => ("options of a mount", MOUNTS),
            Self::MountOrder => ("order of mounts", MOUNTS),
            Self::MaskedPath => ("masked path", "set procMount as on the source, or start a new pod"),
            Self::ReadonlyPath => ("read-only path", "set procMount as on the source, or start a new pod"),
            Self::FileType => ("type of an open file", FILES),
            Self::FilePath => ("path of an open file", FILES),
            Self::FileReference => ("reference to a file", FRESH),
            Self::UnixSocket => ("Unix socket", FILES),
            Self::Terminal => ("terminal", "set tty as on the source"),
            Self::GhostFile => ("deleted file", FILES),
            Self::Cgroup => ("cgroup", FRESH),
        }
    }

    /// What helps.
    #[must_use]
    pub const fn help(self) -> &'static str {
        self.texts().1
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.texts().0)
    }
}
