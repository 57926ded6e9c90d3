//! The plan itself.

use super::assign::assign;
use super::count::{believed, count, credit};
use super::elsewhere::give_elsewhere;
use super::pace::pace;
use super::{End, MemberJobState, Order, Part, Plan, Record, Release, Work};
use crate::capacity::Shortage;
use crate::placement::{Candidate, Undecided};
use portolan_api::Reason;
use std::collections::{BTreeMap, BTreeSet};

/// Plans the next step of a job: what is to be on record, and then done in each cluster.
///
/// `states` has the Job of every cluster of the fleet. For completions that stay pending, `shortage` is asked why a
/// cluster has no room when so many more pods have found their place there.
///
/// # Errors
/// The placement policy cannot be followed; what is placed stays as it is.
pub fn plan(
    work: &Work,
    record: &Record,
    states: &BTreeMap<String, MemberJobState>,
    candidates: &[Candidate],
    mut shortage: impl FnMut(&str, u32) -> Shortage,
) -> Result<Plan, Undecided> {
    let mut plan = Plan { record: record.clone(), ..Plan::default() };
    let states = &believed(record, states);
    for (cluster, state) in states {
        count(work, cluster, state, &mut plan.record);
    }
    let gone: Vec<String> = record.parts.keys().filter(|name| !states.contains_key(*name)).cloned().collect();
    for cluster in gone {
        // It was taken out of the fleet, which is silence for good; what it finished stays counted.
        count(work, &cluster, &MemberJobState::Unreachable { too_long: true }, &mut plan.record);
    }
    let given =
        |record: &Record| record.parts.values().map(|part| part.completions).fold(0, u32::saturating_add);
    plan.pending = work.total().saturating_sub(given(&plan.record));
    for (cluster, part) in &mut plan.record.parts {
        if let Some(state) = states.get(cluster) {
            credit(state, part, &mut plan.pending);
        }
    }
    let done = plan.record.parts.values().map(|part| part.succeeded).fold(0, u32::saturating_add);
    if plan.record.end.is_none() && done >= work.total() {
        plan.record.end = Some(End::Complete);
    }
    let mut suspended = BTreeSet::new();
    if plan.record.end.is_none() && !work.suspended {
        if plan.pending > 0 {
            assign(work, candidates, &mut plan, &mut shortage)?;
            give_up_where_all_failed(candidates, &mut plan);
        }
        if plan.record.end.is_none() {
            suspended = give_elsewhere(work, states, candidates, &mut plan, &mut shortage)?;
        }
        for (cluster, part) in &mut plan.record.parts {
            // A cluster whose Job is gone after all was brought got more: that is work for another Job.
            let no_job = states.get(cluster) == Some(&MemberJobState::NoJob);
            if no_job && part.open() > 0 && part.succeeded > part.finished_before {
                part.renew();
            }
        }
    }
    pace(work, states, candidates, &mut plan.record);
    let stopped = work.suspended || plan.record.end.is_some();
    for (cluster, part) in &plan.record.parts {
        let state = states.get(cluster).unwrap_or(&MemberJobState::Unreachable { too_long: false });
        // Numbered work that has begun goes on with the template that it began with.
        let pinned = work.indexed && part.succeeded > 0;
        let leaving = work.leaving.contains(cluster);
        let done = part.open() == 0 || plan.record.end.is_some();
        let order = match state {
            // All it brought is on record, and it is in the way of the cluster's leaving.
            MemberJobState::Job(job) if leaving && job.over && done => Order::Delete,
            _ => order(part, state, stopped || suspended.contains(cluster) || (leaving && !pinned), pinned),
        };
        plan.orders.insert(cluster.clone(), order);
    }
    Ok(plan)
}

/// What cannot be done anywhere has failed.
fn give_up_where_all_failed(candidates: &[Candidate], plan: &mut Plan) {
    let failed = |candidate: &Candidate| {
        let part = plan.record.parts.get(candidate.name());
        part.is_some_and(|part| part.released == Some(Release::Failed))
    };
    if plan.pending > 0 && !candidates.is_empty() && candidates.iter().all(failed) {
        let message = format!(
            "{} completions are open, and the Job has failed in every cluster of the fleet",
            plan.pending
        );
        plan.record.end = Some(End::Failed { reason: Reason::FailedInAllClusters, message });
    }
}

fn order(part: &Part, state: &MemberJobState, stopped: bool, pinned: bool) -> Order {
    match state {
        MemberJobState::Unreachable { .. } => Order::Noop,
        MemberJobState::NoJob if stopped || part.open() == 0 || part.parallelism == 0 => Order::Noop,
        MemberJobState::NoJob => Order::Create {
            attempt: part.attempt,
            finished_before: part.finished_before,
            completions: part.open(),
            parallelism: part.parallelism,
        },
        MemberJobState::Job(job) if job.attempt < part.attempt => match (job.over, part.released) {
            (false, _) => Order::Suspend,
            // It stays for people to look at, unless it is in the way.
            (true, Some(Release::Failed)) if part.open() == 0 => Order::Noop,
            (true, _) => Order::Delete,
        },
        MemberJobState::Job(job) if job.complete || job.failure.is_some() => Order::Noop,
        MemberJobState::Job(job) => match (stopped || (job.outdated && !pinned), job.suspended) {
            (true, true) => Order::Noop,
            (true, false) => Order::Suspend,
            (false, _) => Order::Resume { parallelism: part.parallelism },
        },
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
