//! The answer for a MultiClusterJob.

use super::Unanswered;
use super::cluster::{bounded, brief, full, names_no_member, refusals, signed, too_few};
use super::manifest::undecided;
use super::trial::{Trial, Trials};
use crate::jobs::JobOutlook;
use portolan_api::Reason;
use portolan_api::placementreview::{ClusterReview, JobCounts, ObjectReview, ReviewError, ReviewResult};
use portolan_core::jobs::{End, Part};
use portolan_core::placement::Account;
use portolan_runtime::foreign_text;

const SUSPENDED: &str = "It is suspended: no pod runs, and nothing is given to clusters.";
const CLOUD: &str = "A further cloud cluster would help: completions that may go anywhere fit nowhere.";

/// Why it is where it is.
pub(super) fn explained(outlook: &JobOutlook) -> Result<ObjectReview, Unanswered> {
    let told = |account: &Account| full(account, outlook.reserved.get(&account.cluster));
    reviewed(outlook, told, None)
}

/// What would come of applying it.
pub(super) fn planned(outlook: &JobOutlook, trials: &Trials) -> Result<ObjectReview, Unanswered> {
    reviewed(outlook, brief, Some(trials))
}

fn reviewed(
    outlook: &JobOutlook,
    told: impl Fn(&Account) -> ClusterReview,
    trials: Option<&Trials>,
) -> Result<ObjectReview, Unanswered> {
    let all = trials.is_none();
    let refusing = trials.map(Trials::refusing).unwrap_or_default();
    let mut review = ObjectReview { paused: outlook.suspended, ..ObjectReview::default() };
    let plan = match &outlook.plan {
        Ok(plan) => plan,
        Err(problem) => {
            review.errors.push(undecided(problem)?);
            let unreadable = review
                .errors
                .iter()
                .any(|error| Reason::parse(&error.reason) == Some(Reason::InvalidTemplate));
            review.result = if unreadable { ReviewResult::Invalid } else { ReviewResult::Pending };
            return Ok(review);
        }
    };
    let parts = || plan.record.parts.values();
    let finished: u32 = parts().map(|part| part.succeeded).sum();
    let open: u32 = parts().map(Part::open).sum();
    let failed: u32 = parts().map(|part| part.failed).sum();
    review.summary.extend(outlook.suspended.then(|| SUSPENDED.to_owned()));
    review.summary.push(format!("{finished} of {} completions finished", outlook.total));
    match &plan.record.end {
        Some(End::Complete) => review.summary.push("It is complete: nothing of it is run again.".to_owned()),
        Some(End::Failed { message, .. }) => {
            review.summary.push(format!("It has failed: {}", foreign_text(message)));
        }
        None => review.summary.push(format!("{open} placed and open, {} pending", plan.pending)),
    }
    if failed > 0 || plan.record.retries > 0 {
        let (pods, times) = (counted(failed, "pod"), counted(plan.record.retries, "time"));
        review.summary.push(format!("{pods} failed; retried in another cluster {times}"));
    }
    if plan.to_cloud && plan.pending > 0 {
        review.summary.push(CLOUD.to_owned());
    }
    let ended = plan.record.end.is_some();
    review.pending = if ended || outlook.suspended { 0 } else { signed(plan.pending) };
    review.refusals = refusals(&plan.refusals, &outlook.accounts, &mut review.notes);
    review.refusals.retain(|each| !refusing.contains_key(&each.cluster));
    let lacks = if review.pending > 0 { too_few(outlook.locations, &outlook.accounts) } else { None };
    review.notes.extend(lacks);
    let mut clusters = Vec::new();
    let mut names: Vec<&String> = outlook.before.parts.keys().chain(plan.record.parts.keys()).collect();
    names.extend(outlook.accounts.iter().filter(|_| all).map(|account| &account.cluster));
    names.extend(refusing.keys());
    names.sort();
    names.dedup();
    for name in names {
        let (before, after) = (outlook.before.parts.get(name), plan.record.parts.get(name));
        let completions = |part: Option<&Part>| part.map_or(0, |part| signed(part.completions));
        let pods = |part: Option<&Part>| part.map_or(0, |part| signed(part.in_use()));
        let (had, has) = (completions(before), completions(after));
        if !all && had == 0 && has == 0 && !refusing.contains_key(name) {
            continue;
        }
        let account = outlook.accounts.iter().find(|account| account.cluster == *name);
        let mut each = account.map(&told).unwrap_or_else(|| ClusterReview {
            cluster: name.clone(),
            verdict: "it is no longer a member".to_owned(),
            ..ClusterReview::default()
        });
        (each.before, each.after) = (had, has);
        let count = |count: fn(&Part) -> u32| after.map_or(0, |part| signed(count(part)));
        each.job = (before.is_some() || after.is_some()).then(|| JobCounts {
            parallelism_before: pods(before),
            parallelism_after: pods(after),
            succeeded: count(|part| part.succeeded),
            failed: count(|part| part.failed),
            attempt: count(|part| part.attempt),
        });
        match outlook.notes.get(name).filter(|_| all) {
            Some((Some(reason), message)) => {
                let (reason, message) = (reason.clone(), foreign_text(message));
                each.refused = Some(ReviewError { cluster: Some(name.clone()), reason, message });
            }
            Some((None, message)) => each.note = Some(foreign_text(message)),
            None => {}
        }
        match trials.and_then(|trials| trials.get(name)) {
            Some(Trial::Unknown(message)) => each.note = Some(format!("it was not asked: {message}")),
            Some(trial) => each.refused = trial.error(name, Reason::InvalidTemplate),
            None => {}
        }
        clusters.push(each);
    }
    let refused = clusters.iter().any(|each| each.refused.is_some());
    let refused = !ended && (refused || names_no_member(&outlook.accounts));
    review.result = if review.pending > 0 || refused {
        ReviewResult::Pending
    } else if !all && clusters.iter().any(ClusterReview::changes) {
        ReviewResult::Changes
    } else {
        ReviewResult::Unchanged
    };
    review.clusters = bounded(clusters, &mut review.notes);
    Ok(review)
}

fn counted(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
