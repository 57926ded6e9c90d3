//! Limits of a process and its place when memory runs out.

use super::allowed::Allowed;
use super::capability::CapabilitySet;
use super::refusal::{Damage, Refusal};
use super::rule::Rule;
use super::wire::Fields;

/// Limits in the order of the kernel's numbers, as the OCI spec names them. CRIU writes all.
pub(super) const LIMITS: [&str; 16] = [
    "RLIMIT_CPU",
    "RLIMIT_FSIZE",
    "RLIMIT_DATA",
    "RLIMIT_STACK",
    "RLIMIT_CORE",
    "RLIMIT_RSS",
    "RLIMIT_NPROC",
    "RLIMIT_NOFILE",
    "RLIMIT_MEMLOCK",
    "RLIMIT_AS",
    "RLIMIT_LOCKS",
    "RLIMIT_SIGPENDING",
    "RLIMIT_MSGQUEUE",
    "RLIMIT_NICE",
    "RLIMIT_RTPRIO",
    "RLIMIT_RTTIME",
];
/// Limits up to which a process may put itself above others.
const PRIORITIES: [&str; 2] = ["RLIMIT_NICE", "RLIMIT_RTPRIO"];

/// Checks the state of a process that lives.
pub(super) fn check(pid: u32, task: &Fields<'_>, allowed: &Allowed) -> Result<(), Refusal> {
    oom_score(pid, task, allowed)?;
    limits(pid, task, allowed)
}

/// Without a score, the process would keep that of CRIU.
fn oom_score(pid: u32, task: &Fields<'_>, allowed: &Allowed) -> Result<(), Refusal> {
    let found = task.number(14)?.ok_or_else(|| missing(task, 14))?;
    // protobuf-c takes the low 32 bits of what other decoders refuse.
    let found = i32::try_from(found.cast_signed())
        .map_err(|_| Refusal::damaged(task.image(), Damage::TooLarge { field: 14 }))?;
    if found >= allowed.oom_score_adj || allowed.can_get(CapabilitySet::SYS_RESOURCE) {
        return Ok(());
    }
    let least = format!("{} or more", allowed.oom_score_adj);
    Err(Refusal::rights(task.image(), Some(pid), Rule::OomScore, found, least))
}

fn limits(pid: u32, task: &Fields<'_>, allowed: &Allowed) -> Result<(), Refusal> {
    let limits = task.message(8)?.ok_or_else(|| missing(task, 8))?.messages(1)?;
    if limits.len() != LIMITS.len() {
        let found = format!("{} limits", limits.len());
        return Err(Refusal::rights(task.image(), Some(pid), Rule::ResourceLimits, found, LIMITS.len()));
    }
    for (name, limit) in LIMITS.into_iter().zip(&limits) {
        let soft = limit.number(1)?.ok_or_else(|| missing(limit, 1))?;
        let hard = limit.number(2)?.ok_or_else(|| missing(limit, 2))?;
        let most = match allowed.limits.get(name) {
            Some(_) if allowed.can_get(CapabilitySet::SYS_RESOURCE) => None,
            Some(most) => Some(*most),
            None if PRIORITIES.contains(&name) && !allowed.can_get(CapabilitySet::SYS_NICE) => Some(0),
            None => None,
        };
        // Infinity is the largest number.
        if let Some(most) = most.filter(|most| soft.max(hard) > *most) {
            let found = format!("{name} {}", soft.max(hard));
            return Err(Refusal::rights(task.image(), Some(pid), Rule::ResourceLimits, found, most));
        }
    }
    Ok(())
}

fn missing(message: &Fields<'_>, field: u32) -> Refusal {
    Refusal::damaged(message.image(), Damage::Missing { field })
}
