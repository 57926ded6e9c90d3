//! Work that cannot be done where it was given to, and may go elsewhere.

use super::assign::assign;
use super::pace::{budget, used};
use super::{JobSnapshot, MemberJobState, Part, Plan, Release, Work};
use crate::capacity::Shortage;
use crate::placement::{Candidate, Refusal, Undecided};
use portolan_api::Reason;
use std::collections::{BTreeMap, BTreeSet};

/// Gives the open completions of clusters that cannot run a single pod of them to others, as far as the policy finds
/// any; answers in which clusters the Job must be suspended before that can be done.
///
/// What is given is what the policy would decide without that part, and only if all of it finds a place: work that is
/// no better off elsewhere stays, and goes on when its cluster can run it again.
pub(super) fn give_elsewhere(
    work: &Work,
    states: &BTreeMap<String, MemberJobState>,
    candidates: &[Candidate],
    plan: &mut Plan,
    shortage: &mut dyn FnMut(&str, u32) -> Shortage,
) -> Result<BTreeSet<String>, Undecided> {
    let mut suspended = BTreeSet::new();
    let has_turn = used(&plan.record) < budget(work);
    for candidate in candidates {
        let (Some(part), Some(state)) =
            (plan.record.parts.get(candidate.name()), states.get(candidate.name()))
        else {
            continue;
        };
        // A part that runs nothing because others run all that may run at a time does not wait for room.
        if part.in_use() == 0 && !has_turn && candidate.closed.is_none() {
            continue;
        }
        let Some((release, refusal)) = stuck(part, state, candidate, shortage) else { continue };
        let name = candidate.name().to_owned();
        plan.stuck.insert(name.clone(), refusal);
        // A rest of numbered work cannot be run alone.
        if work.indexed && part.succeeded > 0 {
            continue;
        }
        let mut moved = plan.clone();
        if let Some(part) = moved.record.parts.get_mut(&name) {
            moved.pending = moved.pending.saturating_add(part.open());
            part.release(release);
        }
        assign(work, candidates, &mut moved, shortage)?;
        if moved.pending > plan.pending {
            continue;
        }
        match state {
            MemberJobState::Job(job) if !job.over => _ = suspended.insert(name),
            _ => *plan = moved,
        }
    }
    Ok(suspended)
}

/// Why not a single pod of a part can run in its cluster, if that is so.
fn stuck(
    part: &Part,
    state: &MemberJobState,
    candidate: &Candidate,
    shortage: &mut dyn FnMut(&str, u32) -> Shortage,
) -> Option<(Release, Refusal)> {
    let waits = match state {
        MemberJobState::Unreachable { .. } => false,
        MemberJobState::NoJob => true,
        MemberJobState::Job(job) => job.attempt == part.attempt && !ended(job),
    };
    if !waits || part.open() == 0 {
        return None;
    }
    if let (MemberJobState::NoJob, Some(closed)) = (state, &candidate.closed) {
        return Some((Release::Refused, closed.clone()));
    }
    let none = candidate.bound == 0 && candidate.room.max_replicas == 0;
    none.then(|| {
        let message = format!("no pod of its part finds a node: {}", shortage(candidate.name(), 0));
        (Release::NoRoom, Refusal { reason: Reason::NoRoom, message })
    })
}

fn ended(job: &JobSnapshot) -> bool {
    job.complete || job.failure.is_some()
}
