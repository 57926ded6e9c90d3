//! Processes and threads: who they are and what they may do.

use super::allowed::Allowed;
use super::capability::CapabilitySet;
use super::refusal::{Damage, Refusal};
use super::resources;
use super::rule::Rule;
use super::seccomp::{Filters, Holder};
use super::wire::Fields;

/// `SECBIT_KEEP_CAPS`, which every process may set.
const KEEP_CAPABILITIES: u32 = 1 << 4;
/// States of a process that has ended, and runs no instruction any more: dead, zombie.
const ENDED: [u32; 2] = [2, 6];
/// Policies of the scheduler for processes without privileges: other, batch, idle.
const ORDINARY_POLICIES: [u32; 3] = [0, 3, 5];

/// What the other checks need of a process.
#[derive(Debug)]
pub(super) struct Core {
    /// Whether it has ended.
    pub(super) ended: bool,
    /// Its set of cgroups, if it has one.
    pub(super) cgroup_set: Option<u32>,
    /// The last filter of seccomp that it sets for all threads of the process.
    pub(super) filter_for_all: Option<u32>,
}

/// What a thread is checked against.
pub(super) struct Checker<'a> {
    pub(super) allowed: &'a Allowed,
    pub(super) filters: &'a Filters,
    /// The LSM that the images' labels are for, as the inventory has it.
    pub(super) lsm: u32,
}

impl Checker<'_> {
    /// Checks `core-*.img` of a thread. A leader has the state of the process too.
    pub(super) fn core(&self, pid: u32, core: &Fields<'_>, holder: Holder) -> Result<Core, Refusal> {
        let leader = matches!(holder, Holder::Leader);
        let image = core.image();
        let task = core.message(3)?;
        let mut ended = false;
        let mut cgroup_set = None;
        if let Some(task) = &task {
            ended = leader && ENDED.contains(&task.need_u32(1)?);
            if leader && !ended {
                resources::check(pid, task, self.allowed)?;
            }
            cgroup_set = task.u32(9)?;
            // Of older versions: where it is there, CRIU uses it instead of the thread's.
            if task.u32(11)?.is_some() || task.u32(12)?.is_some() {
                let found = "a filter of the process instead of one of the thread";
                return Err(Refusal::rights(image, Some(pid), Rule::SeccompMode, found, "none of this kind"));
            }
        } else if leader {
            return Err(Refusal::damaged(image, Damage::Missing { field: 3 }));
        }
        let Some(thread) = core.message(5)? else {
            let missing = Refusal::damaged(image, Damage::Missing { field: 5 });
            return if ended { Ok(Core { ended, cgroup_set, filter_for_all: None }) } else { Err(missing) };
        };
        self.scheduling(pid, &thread)?;
        let credentials =
            thread.message(10)?.ok_or_else(|| Refusal::damaged(image, Damage::Missing { field: 10 }))?;
        self.user(pid, &credentials)?;
        self.capabilities(pid, &credentials)?;
        self.labels(pid, &credentials)?;
        let filter_for_all = self.filters.check(pid, &thread, holder, self.allowed)?;
        Ok(Core { ended, cgroup_set: thread.u32(16)?.or(cgroup_set), filter_for_all })
    }

    fn scheduling(&self, pid: u32, thread: &Fields<'_>) -> Result<(), Refusal> {
        if self.allowed.can_get(CapabilitySet::SYS_NICE) {
            return Ok(());
        }
        let refused =
            |found| Refusal::rights(thread.image(), Some(pid), Rule::Scheduling, found, "no priority");
        let policy = thread.u32(4)?.unwrap_or(0);
        if !ORDINARY_POLICIES.contains(&policy) {
            return Err(refused(format!("policy {policy}")));
        }
        match thread.signed(3)? {
            Some(nice) if nice < 0 => Err(refused(format!("nice {nice}"))),
            _ => Ok(()),
        }
    }

    fn user(&self, pid: u32, credentials: &Fields<'_>) -> Result<(), Refusal> {
        let Allowed { uid, gid, groups, .. } = self.allowed;
        let refused = |rule, found: u32, allowed: &dyn std::fmt::Display| {
            Refusal::rights(credentials.image(), Some(pid), rule, found, allowed)
        };
        for field in [1, 3, 5, 7] {
            let found = credentials.need_u32(field)?;
            if found != *uid && !self.allowed.may_change_uid() {
                return Err(refused(Rule::Uid, found, uid));
            }
        }
        for field in [2, 4, 6, 8] {
            let found = credentials.need_u32(field)?;
            if found != *gid && !self.allowed.may_change_gid() {
                return Err(refused(Rule::Gid, found, gid));
            }
        }
        let found = credentials.u32s(14)?;
        match found.into_iter().find(|group| group != gid && !groups.contains(group)) {
            Some(group) if !self.allowed.may_change_gid() => {
                Err(refused(Rule::Groups, group, &format!("{gid} and {groups:?}")))
            }
            _ => Ok(()),
        }
    }

    fn capabilities(&self, pid: u32, credentials: &Fields<'_>) -> Result<(), Refusal> {
        let allowed = &self.allowed.capabilities;
        let permitted = self.allowed.permitted();
        let image = credentials.image();
        let sets = [
            (12, Rule::BoundingCapabilities, allowed.bounding),
            (10, Rule::PermittedCapabilities, permitted),
            (11, Rule::EffectiveCapabilities, permitted),
            (9, Rule::InheritableCapabilities, allowed.inheritable),
            (19, Rule::AmbientCapabilities, allowed.ambient),
        ];
        for (field, rule, allowed) in sets {
            let found = set(credentials, field)?;
            if !allowed.contains(found) {
                return Err(Refusal::rights(image, Some(pid), rule, found, allowed));
            }
        }
        let bits = credentials.need_u32(13)?;
        if bits & !KEEP_CAPABILITIES != 0 && !self.allowed.can_get(CapabilitySet::SETPCAP) {
            return Err(Refusal::rights(image, Some(pid), Rule::SecureBits, format!("{bits:#x}"), "none"));
        }
        if self.allowed.no_new_privileges && credentials.u32(18)?.unwrap_or(0) == 0 {
            return Err(Refusal::rights(image, Some(pid), Rule::NoNewPrivileges, "it off", "it on only"));
        }
        Ok(())
    }

    /// CRIU keeps a label as the kernel names it, without the mode of AppArmor, and none for an unconfined process.
    fn labels(&self, pid: u32, credentials: &Fields<'_>) -> Result<(), Refusal> {
        const SELINUX: u32 = 1;
        const APPARMOR: u32 = 2;
        let image = credentials.image();
        let refused = |found: &str, allowed: &str| {
            Err(Refusal::rights(
                image,
                Some(pid),
                Rule::LsmProfile,
                format!("{found:?}"),
                format!("{allowed:?}"),
            ))
        };
        let wanted = self.allowed.apparmor.as_deref().or(self.allowed.selinux.as_deref()).unwrap_or("");
        let found = credentials.text(15)?.unwrap_or("");
        if found != wanted {
            return refused(found, wanted);
        }
        let lsm = if self.allowed.apparmor.is_some() { APPARMOR } else { SELINUX };
        if !wanted.is_empty() && self.lsm != lsm {
            return refused("a label of another LSM", wanted);
        }
        match credentials.text(16)? {
            Some(sockets) if !sockets.is_empty() && sockets != wanted => return refused(sockets, wanted),
            _ => {}
        }
        match credentials.bytes(17)? {
            Some(policy) if !policy.is_empty() => refused("an AppArmor policy of its own", wanted),
            _ => Ok(()),
        }
    }
}

/// A set of capabilities: words of 32 bits, the lowest first.
fn set(credentials: &Fields<'_>, field: u32) -> Result<CapabilitySet, Refusal> {
    match credentials.u32s(field)?.as_slice() {
        [] => Ok(CapabilitySet::default()),
        [low] => Ok(CapabilitySet(u64::from(*low))),
        [low, high] => Ok(CapabilitySet(u64::from(*low) | (u64::from(*high) << 32))),
        _ => Err(Refusal::damaged(credentials.image(), Damage::TooMany { limit: 2 })),
    }
}
