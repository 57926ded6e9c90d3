//! The tree of processes, and the namespaces that they are in.

use super::allowed::{Allowed, Extent};
use super::folder::Folder;
use super::image::Magic;
use super::kind::Kind;
use super::namespace::Namespace;
use super::refusal::{Damage, Refusal, Unfit};
use super::rule::Rule;
use super::wire::Fields;
use std::collections::{BTreeMap, BTreeSet};

/// A process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// Without the leader.
    pub(super) threads: BTreeSet<u32>,
    /// Whether the leader is among its threads, as it is of every process that has not ended.
    pub(super) has_leader: bool,
}

/// The numbers that CRIU gives the namespaces of one process.
pub(super) type Numbers = BTreeMap<Namespace, u32>;

/// Reads `pstree.img`: the first process is the container's first.
pub(super) fn processes(folder: &Folder) -> Result<Vec<Process>, Refusal> {
    const NAME: &str = "pstree.img";
    let image = folder.read(NAME)?;
    let mut processes = Vec::new();
    let mut numbers = BTreeSet::new();
    for entry in image.all(Magic::Pstree)? {
        let pid = entry.need_u32(1)?;
        // CRIU takes the first one for the leader, without looking at its number. Of a process that has ended it has never
        // read this number, and writes what happens to be in its memory.
        let list = entry.u32s(5)?;
        let has_leader = list.first() == Some(&pid);
        let threads: BTreeSet<u32> = list.iter().skip(1).copied().collect();
        if threads.len() + 1 < list.len() || threads.contains(&pid) {
            return Err(Refusal::damaged(NAME, Damage::SameNumber { number: pid }));
        }
        for &number in threads.iter().chain([&pid]) {
            if number == 0 || !numbers.insert(number) {
                return Err(Refusal::damaged(NAME, Damage::SameNumber { number }));
            }
        }
        processes.push(Process { pid, threads, has_leader });
    }
    if processes.is_empty() { Err(Refusal::damaged(NAME, Damage::Truncated)) } else { Ok(processes) }
}

/// The namespaces of a message with numbers of kernel objects.
pub(super) fn numbers(ids: &Fields<'_>) -> Result<Numbers, Refusal> {
    let mut numbers = Numbers::new();
    for namespace in Namespace::ALL {
        if let Some(number) = ids.u32(namespace.field())?.filter(|number| *number != 0) {
            numbers.insert(namespace, number);
        }
    }
    Ok(numbers)
}

/// Checks the namespaces of the container's first process. `node` has those of CRIU itself: a process in one of them is
/// restored in the node's.
pub(super) fn check_first(
    image: &str,
    pid: u32,
    found: &Numbers,
    node: &Numbers,
    allowed: &Allowed,
) -> Result<(), Refusal> {
    let own = |namespace: Namespace| match (found.get(&namespace), node.get(&namespace)) {
        (Some(found), Some(node)) => Some(found != node),
        _ => None,
    };
    let refused = |rule, namespace: Namespace, found: &str, allowed: &str| {
        let name = namespace.name();
        Err(Refusal::rights(
            image,
            Some(pid),
            rule,
            format!("{found} {name} namespace"),
            format!("{allowed} one"),
        ))
    };
    for namespace in Namespace::ALL {
        let wanted = allowed.namespaces.contains_key(&namespace) || namespace == Namespace::Mount;
        match (own(namespace), wanted) {
            (Some(true), true) => {}
            (Some(false), true) => return refused(Rule::Namespace, namespace, "the node's", "its own"),
            (None, true) => return refused(Rule::Namespace, namespace, "no", "its own"),
            // CRIU would take the missing number for a namespace of its own, or for the node's.
            (None, false) if found.contains_key(&namespace) != node.contains_key(&namespace) => {
                return refused(Rule::Namespace, namespace, "no", "a known");
            }
            (Some(true), false) if namespace == Namespace::User => {
                return refused(Rule::UserNamespace, namespace, "its own", "the node's");
            }
            // Less than the spec allows.
            _ => {}
        }
    }
    Ok(())
}

/// Checks the images of namespaces: all belong to the container, and those that it joins are left as they are.
pub(super) fn check_images(folder: &Folder, own: &Numbers, allowed: &Allowed) -> Result<(), Refusal> {
    for (name, entry) in folder.entries() {
        let Kind::Namespace(namespace) = entry.kind else { continue };
        // The clocks of the source, of a container without a time namespace: CRIU sets them in a new one.
        if namespace == Namespace::Time && entry.number == 0 {
            continue;
        }
        if own.get(&namespace).is_none_or(|number| u64::from(*number) != entry.number) {
            return Err(Refusal::unfit(name, Unfit::Stray));
        }
    }
    external_key(folder, own, allowed, Namespace::Network, "netns", Magic::Netns, 8)?;
    external_key(folder, own, allowed, Namespace::Pid, "pidns", Magic::Pidns, 1)?;
    user(folder, own, allowed)
}

fn external_key(
    folder: &Folder,
    own: &Numbers,
    allowed: &Allowed,
    namespace: Namespace,
    prefix: &str,
    magic: Magic,
    field: u32,
) -> Result<(), Refusal> {
    let number = own.get(&namespace).copied().unwrap_or(0);
    let name = format!("{prefix}-{number}.img");
    let joins = allowed.namespaces.get(&namespace).is_some_and(Option::is_some);
    let wanted = if joins { namespace.external_key() } else { None }.unwrap_or("");
    let image = folder.read_if_there(&name)?;
    let found = match &image {
        Some(image) => image.one(magic)?.text(field)?.unwrap_or("").to_owned(),
        None => String::new(),
    };
    if found == wanted {
        return Ok(());
    }
    let shown = |key: &str| format!("the key {key:?} of a {} namespace", namespace.name());
    Err(Refusal::rights(&name, None, Rule::JoinedNamespace, shown(&found), shown(wanted)))
}

fn user(folder: &Folder, own: &Numbers, allowed: &Allowed) -> Result<(), Refusal> {
    let wanted = allowed.namespaces.contains_key(&Namespace::User);
    let number = own.get(&Namespace::User).copied().unwrap_or(0);
    let name = format!("userns-{number}.img");
    let Some(image) = folder.read_if_there(&name)? else {
        return if wanted { Err(Refusal::unfit(&name, Unfit::Missing)) } else { Ok(()) };
    };
    if !wanted {
        return Err(Refusal::rights(&name, None, Rule::UserNamespace, "one of its own", "the node's"));
    }
    let entry = image.one(Magic::Userns)?;
    for (field, allowed) in [(1, &allowed.uid_map), (2, &allowed.gid_map)] {
        let found = entry.messages(field)?.iter().map(extent).collect::<Result<Vec<_>, _>>()?;
        if found != *allowed {
            return Err(Refusal::rights(
                &name,
                None,
                Rule::UserNamespace,
                format!("the IDs {found:?}"),
                format!("the IDs {allowed:?}"),
            ));
        }
    }
    Ok(())
}

fn extent(entry: &Fields<'_>) -> Result<Extent, Refusal> {
    Ok(Extent { inside: entry.need_u32(1)?, outside: entry.need_u32(2)?, count: entry.need_u32(3)? })
}
