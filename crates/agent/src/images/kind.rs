//! The files that a checkpoint of CRIU 4.2 may consist of.

use super::namespace::Namespace;

/// What is done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// It is decoded.
    Decoded,
    /// One of each process or thread: it must belong to one that is in the tree.
    Process,
    /// Decoded, and one of each namespace: it must belong to the container's.
    Namespace(Namespace),
    /// A file that was deleted while it was open.
    GhostFile,
    /// The content of a memory file system, a tar archive.
    Archive,
    /// Memory, or data in pipes and sockets: nothing in it gives rights.
    Data,
    /// The network of a container that has one of its own: commands of the node would read it.
    Network,
    /// `descriptors.json` of runc.
    Descriptors,
    /// CRIU would read it, and nothing of a container belongs into it.
    Refused,
}

const PLAIN: u32 = 0;

/// Prefix, radix of the number that follows (or [`PLAIN`]), suffix. `criu/image-desc.c`, without what older versions wrote.
const TABLE: &[(&str, u32, &str, Kind)] = &[
    ("inventory", PLAIN, ".img", Kind::Decoded),
    ("pstree", PLAIN, ".img", Kind::Decoded),
    ("files", PLAIN, ".img", Kind::Decoded),
    ("seccomp", PLAIN, ".img", Kind::Decoded),
    ("cgroup", PLAIN, ".img", Kind::Decoded),
    ("remap-fpath", PLAIN, ".img", Kind::Decoded),
    ("tty-info", PLAIN, ".img", Kind::Decoded),
    ("core-", 10, ".img", Kind::Process),
    ("ids-", 10, ".img", Kind::Process),
    ("mm-", 10, ".img", Kind::Process),
    ("fs-", 10, ".img", Kind::Process),
    // The number is that of the table of descriptors, which is in `ids-*.img`.
    ("fdinfo-", 10, ".img", Kind::Decoded),
    ("mountpoints-", 10, ".img", Kind::Namespace(Namespace::Mount)),
    ("netns-", 10, ".img", Kind::Namespace(Namespace::Network)),
    ("userns-", 10, ".img", Kind::Namespace(Namespace::User)),
    ("pidns-", 10, ".img", Kind::Namespace(Namespace::Pid)),
    ("utsns-", 10, ".img", Kind::Namespace(Namespace::Uts)),
    ("ipcns-var-", 10, ".img", Kind::Namespace(Namespace::Ipc)),
    ("ipcns-shm-", 10, ".img", Kind::Namespace(Namespace::Ipc)),
    ("ipcns-msg-", 10, ".img", Kind::Namespace(Namespace::Ipc)),
    ("ipcns-sem-", 10, ".img", Kind::Namespace(Namespace::Ipc)),
    ("timens-", 10, ".img", Kind::Namespace(Namespace::Time)),
    ("ghost-file-", 16, ".img", Kind::GhostFile),
    ("tmpfs-", 10, ".tar.gz.img", Kind::Archive),
    ("tmpfs-dev-", 10, ".tar.gz.img", Kind::Archive),
    ("pages-", 10, ".img", Kind::Data),
    ("pages-shmem-", 10, ".img", Kind::Data),
    ("pagemap-", 10, ".img", Kind::Data),
    ("pagemap-shmem-", 10, ".img", Kind::Data),
    ("pipes-data", PLAIN, ".img", Kind::Data),
    ("fifo-data", PLAIN, ".img", Kind::Data),
    ("tty-data", PLAIN, ".img", Kind::Data),
    ("sk-queues", PLAIN, ".img", Kind::Data),
    ("tcp-stream-", 16, ".img", Kind::Data),
    ("filelocks", PLAIN, ".img", Kind::Data),
    ("memfd", PLAIN, ".img", Kind::Data),
    ("cpuinfo", PLAIN, ".img", Kind::Data),
    ("stats-dump", PLAIN, "", Kind::Data),
    ("dump.log", PLAIN, "", Kind::Data),
    ("netdev-", 10, ".img", Kind::Network),
    ("ifaddr-", 10, ".img", Kind::Network),
    ("route-", 10, ".img", Kind::Network),
    ("route6-", 10, ".img", Kind::Network),
    ("rule-", 10, ".img", Kind::Network),
    ("iptables-", 10, ".img", Kind::Network),
    ("ip6tables-", 10, ".img", Kind::Network),
    ("nftables-", 10, ".img", Kind::Network),
    ("netns-ct-", 10, ".img", Kind::Network),
    ("netns-exp-", 10, ".img", Kind::Network),
    ("descriptors", PLAIN, ".json", Kind::Descriptors),
    // AppArmor policy that CRIU would load into the kernel; interpreters of the whole node; programs for the kernel.
    ("apparmor", PLAIN, ".img", Kind::Refused),
    ("autofs-", 10, ".img", Kind::Refused),
    ("binfmt-misc", PLAIN, ".img", Kind::Refused),
    ("binfmt-misc-", 10, ".img", Kind::Refused),
    ("bpfmap-file", PLAIN, ".img", Kind::Refused),
    ("bpfmap-data", PLAIN, ".img", Kind::Refused),
    ("irmap-cache", PLAIN, "", Kind::Refused),
];

/// The kind of a file and the number in its name (0 without one), if the name is known.
pub(super) fn kind_of(name: &str) -> Option<(Kind, u64)> {
    TABLE.iter().find_map(|&(prefix, radix, suffix, kind)| {
        let digits = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
        number(digits, radix).map(|number| (kind, number))
    })
}

fn number(digits: &str, radix: u32) -> Option<u64> {
    if radix == PLAIN {
        return digits.is_empty().then_some(0);
    }
    let hexadecimal = |byte: u8| radix == 16 && (b'a'..=b'f').contains(&byte);
    let written_by_criu = digits.bytes().all(|byte| byte.is_ascii_digit() || hexadecimal(byte))
        && (digits == "0" || !digits.starts_with('0'));
    if written_by_criu { u64::from_str_radix(digits, radix).ok() } else { None }
}
