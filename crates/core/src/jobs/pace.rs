//! How many pods each part may run at the same time.

use super::{MemberJobState, Part, Record, Work};
use crate::placement::{Candidate, divide};
use portolan_api::placement::ReplicasMode;
use std::collections::BTreeMap;

/// How many pods a cluster has room for beside those of the part.
pub(super) fn beside(candidate: &Candidate, part: Option<&Part>) -> u32 {
    let room = candidate.bound.saturating_add(candidate.room.max_replicas);
    room.saturating_sub(part.map_or(0, Part::in_use))
}

/// How many pods of the job may run at the same time, in all clusters together.
pub(super) fn budget(work: &Work) -> u32 {
    work.parallelism.saturating_mul(work.times())
}

/// How many do.
pub(super) fn used(record: &Record) -> u32 {
    record.parts.values().map(Part::in_use).fold(0, u32::saturating_add)
}

/// Sets the parallelism of all parts. It is taken from a part only when the job asks for less, since pods that run would
/// be stopped; what one part no longer needs goes to others that have room.
pub(super) fn pace(
    work: &Work,
    states: &BTreeMap<String, MemberJobState>,
    candidates: &[Candidate],
    record: &mut Record,
) {
    if work.suspended || record.end.is_some() {
        record.parts.values_mut().for_each(|part| part.parallelism = 0);
        return;
    }
    let budget = budget(work);
    let most = |part: &Part| match work.request.mode {
        ReplicasMode::Total => work.parallelism,
        ReplicasMode::PerLocation => {
            work.parallelism.saturating_mul(part.completions.div_ceil(work.completions.max(1)))
        }
    };
    for part in record.parts.values_mut() {
        part.parallelism = if part.open() == 0 { 0 } else { part.parallelism.min(most(part)) };
    }
    let used = used(record);
    if used > budget {
        let shares: Vec<_> = record.parts.values().map(|part| (part.open(), part.in_use())).collect();
        for (part, share) in record.parts.values_mut().zip(divide(budget, &shares)) {
            part.parallelism = share;
        }
        return;
    }
    let shares: Vec<(u32, u32)> = record
        .parts
        .iter()
        .map(|(cluster, part)| {
            let answers = !matches!(states.get(cluster), None | Some(MemberJobState::Unreachable { .. }));
            let candidate = candidates.iter().find(|each| each.name() == *cluster).filter(|_| answers);
            let room = candidate.map_or(0, |candidate| beside(candidate, Some(part)));
            let more = part.open().min(most(part)).saturating_sub(part.in_use());
            (part.open(), more.min(room))
        })
        .collect();
    for (part, more) in record.parts.values_mut().zip(divide(budget - used, &shares)) {
        if more > 0 {
            part.parallelism = part.in_use() + more;
        }
    }
}
