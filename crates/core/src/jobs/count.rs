//! Counting what was seen into the record.

use super::{End, JobSnapshot, MemberJobState, Part, Record, Release, Work};
use portolan_api::Reason;
use std::collections::BTreeMap;

/// The states that can be believed. Which Job for a part it is, and what was finished before, is written by the hub,
/// and on record before the Job is made: a Job that says more than the record was changed by somebody. It is taken for
/// the Job on record, and its words are to be set back.
pub(super) fn believed(
    record: &Record,
    states: &BTreeMap<String, MemberJobState>,
) -> BTreeMap<String, MemberJobState> {
    let mut states = states.clone();
    for (cluster, state) in &mut states {
        if let (MemberJobState::Job(job), Some(part)) = (state, record.parts.get(cluster)) {
            job.attempt = job.attempt.min(part.attempt);
            job.finished_before = job.finished_before.min(part.finished_before);
            job.succeeded = job.succeeded.min(job.completions);
        }
    }
    states
}

/// Counts what was seen in one cluster, and decides what becomes of its part.
pub(super) fn count(work: &Work, cluster: &str, state: &MemberJobState, record: &mut Record) {
    let Some(mut part) = record.parts.get(cluster).cloned() else {
        // A Job of ours without a record: what it says of itself is all there is, and it must not be run again.
        if let MemberJobState::Job(job) = state {
            record.parts.insert(cluster.to_owned(), adopted(work, job));
        }
        return;
    };
    match state {
        MemberJobState::Unreachable { too_long } => {
            let whole = !work.indexed || part.succeeded == 0;
            if *too_long && part.open() > 0 && whole && record.end.is_none() {
                part.release(Release::Silent);
            }
        }
        MemberJobState::NoJob => {
            if part.released == Some(Release::Silent) {
                part.released = None;
            }
            // Its Job is gone, by whoever's hand: another one asks for what is still open.
            if part.open() > 0 && part.succeeded > part.finished_before {
                renew(work, cluster, &mut part, record, "was deleted there");
            }
        }
        MemberJobState::Job(job) if job.attempt < part.attempt => {}
        MemberJobState::Job(job) => {
            let finished = part.finished_before.saturating_add(job.succeeded).min(part.completions);
            part.succeeded = part.succeeded.max(finished);
            part.failed = part.failed.max(part.failed_before.saturating_add(job.failed));
            if record.end.is_none() && part.open() > 0 {
                judge(work, cluster, job, &mut part, record);
            }
        }
    }
    let nothing_runs = match state {
        MemberJobState::Unreachable { .. } => false,
        MemberJobState::NoJob => true,
        MemberJobState::Job(job) => job.over,
    };
    let whole = !work.indexed || part.succeeded == 0;
    if work.leaving.contains(cluster) && nothing_runs && whole && part.open() > 0 && record.end.is_none() {
        part.release(Release::Silent);
    }
    record.parts.insert(cluster.to_owned(), part);
}

/// Counts what a Job brought after its completions were given to others, as far as they are still wanted.
pub(super) fn credit(state: &MemberJobState, part: &mut Part, pending: &mut u32) {
    let MemberJobState::Job(job) = state else { return };
    if job.attempt >= part.attempt || !job.over {
        return;
    }
    let extra = job.finished_before.saturating_add(job.succeeded).saturating_sub(part.succeeded);
    let for_its_own = extra.min(part.open());
    // No more than it ever had.
    let more = part.given.saturating_sub(part.completions);
    let for_pending = (extra - for_its_own).min(*pending).min(more);
    *pending -= for_pending;
    part.completions += for_pending;
    part.succeeded += for_its_own + for_pending;
    part.finished_before = part.succeeded;
}

fn adopted(work: &Work, job: &JobSnapshot) -> Part {
    let finished_before = job.finished_before.min(work.total());
    let completions = finished_before.saturating_add(job.completions).min(work.total());
    Part {
        completions,
        succeeded: finished_before.saturating_add(job.succeeded.min(job.completions)).min(completions),
        failed: job.failed,
        attempt: job.attempt,
        finished_before,
        ..Part::default()
    }
}

/// What becomes of a part whose Job has ended, or can no longer be used, before all was brought.
fn judge(work: &Work, cluster: &str, job: &JobSnapshot, part: &mut Part, record: &mut Record) {
    if let Some(failure) = &job.failure {
        failed(work, cluster, failure, part, record);
    } else if job.complete {
        part.renew();
    } else if job.outdated && job.over {
        // Numbered work that has begun goes on with the template that it began with.
        if !work.indexed || part.succeeded == 0 {
            part.renew();
        }
    }
}

fn failed(work: &Work, cluster: &str, failure: &str, part: &mut Part, record: &mut Record) {
    let (open, end) = (part.open(), |reason: Reason, message: String| Some(End::Failed { reason, message }));
    match work.retries {
        None => {
            let message = format!("the Job in {cluster} has failed with {open} completions open: {failure}");
            record.end = end(Reason::JobFailed, message);
        }
        Some(_) if work.indexed && part.succeeded > 0 => {
            let message = format!(
                "the Job in {cluster} has failed after {} of {} indexes: the others cannot be run alone elsewhere, and \
                 finished ones are not run again: {failure}",
                part.succeeded, part.completions
            );
            record.end = end(Reason::IndexesFailed, message);
        }
        Some(limit) if record.retries >= limit => {
            let message = format!(
                "the Job in {cluster} has failed with {open} completions open, and spec.retryLimit {limit} is reached: \
                 {failure}"
            );
            record.end = end(Reason::RetryLimitReached, message);
        }
        Some(_) => {
            record.retries += 1;
            part.release(Release::Failed);
        }
    }
}

fn renew(work: &Work, cluster: &str, part: &mut Part, record: &mut Record, why: &str) {
    if work.indexed && record.end.is_none() {
        let message = format!(
            "the Job in {cluster} {why} after {} of {} indexes: the others cannot be run alone, and finished ones are \
             not run again",
            part.succeeded, part.completions
        );
        record.end = Some(End::Failed { reason: Reason::IndexesLost, message });
    } else {
        part.renew();
    }
}
