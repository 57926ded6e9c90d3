//! What the status of a job says: pure, from the plan and what was seen.

use super::observe::ClusterSnapshot;
use super::record::{signed, write};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use portolan_api::MultiClusterJob;
use portolan_api::Reason;
use portolan_api::conditions::{self, ConditionStatus, ConditionType, Finding};
use portolan_api::multiclusterjob::{JobPlacementStatus, JobRelease, MultiClusterJobStatus};
use portolan_api::placement::{PendingPlacement, PlacementState, Resources};
use portolan_core::jobs::{End, Part, Plan};
use portolan_core::summary::summarise;
use std::collections::BTreeMap;

/// How many clusters are told in full in `status.pending`, and in a condition.
const PENDING_AT_MOST: usize = 32;
const TOLD_AT_MOST: usize = 8;

/// What a status is made from.
pub(super) struct Situation<'a> {
    pub(super) job: &'a MultiClusterJob,
    pub(super) plan: &'a Plan,
    pub(super) seen: &'a BTreeMap<String, ClusterSnapshot>,
    pub(super) total: u32,
    /// By cluster: reason and message of a refusal.
    pub(super) failures: BTreeMap<String, (Reason, String)>,
    /// By cluster: what could not be done there last.
    pub(super) troubles: BTreeMap<String, String>,
    pub(super) requests: Resources,
    /// Whether what the template refers to follows the job, if it refers to anything.
    pub(super) dependencies: Option<Finding>,
    /// Why nothing of silent clusters is given to others although the job asks for it.
    pub(super) doubt: Option<String>,
}

/// The new status. Numbers of a silent cluster stay as last reported; finished completions never go down.
pub(super) fn status(situation: &Situation<'_>, now: &Time) -> MultiClusterJobStatus {
    let (job, plan) = (situation.job, situation.plan);
    let before = job.status.clone().unwrap_or_default();
    let generation = job.metadata.generation;
    let placements: Vec<JobPlacementStatus> = plan
        .record
        .parts
        .iter()
        .map(|(cluster, part)| {
            let last = before.placements.iter().find(|each| each.cluster == *cluster);
            placement(situation, cluster, part, last, now)
        })
        .collect();
    let sum =
        |count: fn(&JobPlacementStatus) -> i32| placements.iter().map(count).fold(0, i32::saturating_add);
    let (succeeded, total) = (sum(|each| each.succeeded), signed(situation.total));
    let holding: Vec<_> = placements.iter().filter(|each| each.completions > 0).collect();
    let summary: Vec<_> =
        holding.iter().map(|each| format!("{}={}", each.cluster, each.completions)).collect();
    let complete = plan.record.end == Some(End::Complete);
    let mut status = MultiClusterJobStatus {
        observed_generation: generation,
        completions: total,
        active: sum(|each| each.active),
        succeeded,
        failed: sum(|each| each.failed),
        pending_completions: signed(plan.pending),
        completions_summary: Some(format!("{succeeded}/{total}")),
        start_time: started(&before, job.spec.suspend, &placements, now),
        completion_time: before.completion_time.clone().or_else(|| complete.then(|| now.clone())),
        locations: holding.iter().map(|each| each.cluster.clone()).collect(),
        locations_summary: (!summary.is_empty()).then(|| summary.join(",")),
        pending: summarise(&plan.refusals, &job.spec.placement.locations, PENDING_AT_MOST)
            .told
            .iter()
            .map(|(cluster, why)| PendingPlacement {
                cluster: (*cluster).to_owned(),
                reason: why.reason.into(),
                message: Some(why.message.clone()),
            })
            .collect(),
        resource_requests: situation.requests.clone(),
        retries: signed(plan.record.retries),
        placements: Vec::new(),
        ..before
    };
    for finding in findings(situation, &placements, succeeded) {
        conditions::set(&mut status.conditions, finding, generation, now.0);
    }
    match &situation.dependencies {
        Some(finding) => _ = conditions::set(&mut status.conditions, finding.clone(), generation, now.0),
        None => _ = conditions::remove(&mut status.conditions, ConditionType::DependenciesReady),
    }
    status.placements = placements;
    status
}

/// The status of a job about which nothing can be planned: what is placed stays, the reason is told.
pub(super) fn undecided(
    job: &MultiClusterJob,
    reason: Reason,
    message: &str,
    now: &Time,
) -> MultiClusterJobStatus {
    let generation = job.metadata.generation;
    let mut status = job.status.clone().unwrap_or_default();
    status.observed_generation = generation;
    for type_ in [ConditionType::Ready, ConditionType::Placed] {
        let finding = Finding::new(type_, false, reason, message);
        conditions::set(&mut status.conditions, finding, generation, now.0);
    }
    status
}

/// Time runs from when work was first given to a cluster; as with a Job, it begins anew after it was held.
fn started(
    before: &MultiClusterJobStatus,
    suspended: bool,
    placements: &[JobPlacementStatus],
    now: &Time,
) -> Option<Time> {
    if suspended && before.completion_time.is_none() {
        return None;
    }
    let begun = placements.iter().any(|each| each.completions > 0);
    before.start_time.clone().or_else(|| begun.then(|| now.clone()))
}

fn placement(
    situation: &Situation<'_>,
    cluster: &str,
    part: &Part,
    last: Option<&JobPlacementStatus>,
    now: &Time,
) -> JobPlacementStatus {
    let fresh = || JobPlacementStatus { cluster: cluster.to_owned(), ..JobPlacementStatus::default() };
    let mut placed = last.cloned().unwrap_or_else(fresh);
    write(part, &mut placed);
    (placed.reason, placed.message) = (None, None);
    let say = |placed: &mut JobPlacementStatus, state, reason: Reason, message: String| {
        placed.state = state;
        (placed.reason, placed.message) = (Some(reason.into()), Some(message));
    };
    let seen = situation.seen.get(cluster);
    let Some(seen) = seen.filter(|seen| seen.is_known) else {
        let (reason, message) = match placed.released {
            Some(JobRelease::Silent) => (
                Reason::Replaced,
                "it was silent for too long: its open completions were given to other clusters, and what it finishes \
                 meanwhile may run twice; it is counted once",
            ),
            _ => (Reason::Unreachable, "it does not answer: these are the last numbers known"),
        };
        say(&mut placed, PlacementState::Unknown, reason, message.to_owned());
        return placed;
    };
    let current = seen.job.as_deref().filter(|job| job.attempt == part.attempt);
    let active = seen.job.as_deref().map_or(0, |job| signed(job.active));
    let before = last.map(|last| (last.active, last.succeeded, last.failed));
    // The time moves with the numbers only, so that a status without news is the same bytes.
    if before != Some((active, placed.succeeded, placed.failed)) {
        placed.observed_at = Some(now.clone());
    }
    placed.active = active;
    if let Some((reason, message)) = situation.failures.get(cluster) {
        say(&mut placed, PlacementState::Failed, *reason, message.clone());
        return placed;
    }
    if let Some(why) = situation.troubles.get(cluster).filter(|_| part.open() > 0) {
        let state = if current.is_some() { PlacementState::Applied } else { PlacementState::Reserved };
        say(&mut placed, state, Reason::MemberError, why.clone());
        return placed;
    }
    let given_away = matches!(placed.released, Some(JobRelease::NoRoom | JobRelease::Refused));
    if given_away && part.open() == 0 {
        // The reason is known in the moment in which they go, and stays told.
        let told = last.filter(|last| last.released == placed.released);
        let (reason, message) = match (situation.plan.stuck.get(cluster), told) {
            (Some(why), _) => {
                let message = format!("{}; what was open was given to other clusters", why.message);
                (Some(why.reason.into()), Some(message))
            }
            (None, told) => told.map(|last| (last.reason.clone(), last.message.clone())).unwrap_or_default(),
        };
        placed.state = if seen.job.is_some() { PlacementState::Removing } else { PlacementState::Failed };
        (placed.reason, placed.message) = (reason, message);
        return placed;
    }
    if let Some(why) = situation.plan.stuck.get(cluster).filter(|_| part.open() > 0) {
        let state = if current.is_some() { PlacementState::Applied } else { PlacementState::Reserved };
        say(&mut placed, state, why.reason, why.message.clone());
        return placed;
    }
    match (current, seen.job.as_deref(), placed.released) {
        (_, _, Some(JobRelease::Failed)) if part.open() == 0 => {
            let message = match seen.job.as_deref().and_then(|job| job.failure.as_ref()) {
                Some((reason, message)) => format!("its Job has failed: {reason}: {message}"),
                None => "its Job has failed".to_owned(),
            };
            let message = format!("{message}; what it left open was given to other clusters");
            say(&mut placed, PlacementState::Failed, Reason::JobFailed, message);
        }
        (Some(job), ..) if job.failure.is_some() => {
            let (reason, message) = job.failure.clone().unwrap_or_default();
            say(&mut placed, PlacementState::Failed, Reason::JobFailed, format!("{reason}: {message}"));
        }
        (None, Some(_), _) => {
            let message = "a Job that was made before is being taken away".to_owned();
            say(&mut placed, PlacementState::Removing, Reason::Superseded, message);
        }
        (None, None, _) if part.open() == 0 || situation.plan.record.end.is_some() => {
            let message = "there is no Job any more; what it finished stays counted".to_owned();
            say(&mut placed, PlacementState::Ready, Reason::Finished, message);
        }
        _ if part.open() == 0 => placed.state = PlacementState::Ready,
        (Some(_), ..) => placed.state = PlacementState::Applied,
        (None, None, _) => placed.state = PlacementState::Reserved,
    }
    placed
}

fn findings(situation: &Situation<'_>, placements: &[JobPlacementStatus], succeeded: i32) -> Vec<Finding> {
    let (plan, total, pending) = (situation.plan, situation.total, situation.plan.pending);
    let ended = plan.record.end.is_some();
    let silent: Vec<_> = placements
        .iter()
        .filter(|each| each.state == PlacementState::Unknown && each.completions > each.succeeded)
        .map(|each| each.cluster.as_str())
        .collect();
    let silent = if ended { String::new() } else { silent.join(", ") };
    let progress = format!("{succeeded} of {total} completions are finished");
    let (complete, failed) = match &plan.record.end {
        Some(End::Complete) => (
            Finding::new(ConditionType::Complete, true, Reason::Complete, progress.clone()),
            Finding::new(ConditionType::Failed, false, Reason::Complete, progress.clone()),
        ),
        Some(End::Failed { reason, message }) => (
            Finding::new(ConditionType::Complete, false, Reason::Failed, progress.clone()),
            Finding::new(ConditionType::Failed, true, *reason, message.clone()),
        ),
        None => (
            Finding::new(ConditionType::Complete, false, Reason::Running, progress.clone()),
            Finding::new(ConditionType::Failed, false, Reason::Running, progress.clone()),
        ),
    };
    let refused = situation.failures.iter().next().filter(|_| silent.is_empty());
    let waits = |each: &&JobPlacementStatus| {
        situation.plan.stuck.contains_key(&each.cluster) && each.completions > each.succeeded
    };
    let stuck = placements.iter().find(waits);
    let ready = match &plan.record.end {
        Some(End::Complete) => Finding::new(ConditionType::Ready, true, Reason::Complete, progress),
        Some(End::Failed { message, .. }) => {
            Finding::new(ConditionType::Ready, false, Reason::Failed, format!("{progress}: {message}"))
        }
        None if let Some((cluster, (_, why))) = refused => {
            Finding::new(ConditionType::Ready, false, Reason::Failed, format!("{cluster}: {why}"))
        }
        None if situation.job.spec.suspend => Finding::new(
            ConditionType::Ready,
            true,
            Reason::Suspended,
            format!("{progress}; spec.suspend is true"),
        ),
        None if !silent.is_empty() => {
            let message = format!("{silent} cannot be asked: {progress} as far as is known");
            Finding::new(ConditionType::Ready, ConditionStatus::Unknown, Reason::Unreachable, message)
        }
        None if pending == 0 && stuck.is_some() => {
            let stuck = stuck.map(|each| (each.cluster.as_str(), each.message.as_deref()));
            let (cluster, why) = stuck.unwrap_or_default();
            let message = format!("{progress}; {cluster}: {}", why.unwrap_or_default());
            Finding::new(ConditionType::Ready, false, Reason::Waiting, message)
        }
        None if pending > 0 => {
            let message = format!("{progress}; {pending} have no cluster");
            Finding::new(ConditionType::Ready, false, Reason::Pending, message)
        }
        None => Finding::new(ConditionType::Ready, true, Reason::Running, progress),
    };
    let placed = if pending == 0 || ended {
        Finding::new(ConditionType::Placed, pending == 0, Reason::Placed, "every completion has a cluster")
    } else {
        let why = summarise(&plan.refusals, &situation.job.spec.placement.locations, TOLD_AT_MOST);
        let message = format!("{pending} of {total} completions have no cluster. {why}");
        let reason = if situation.job.spec.suspend { Reason::Suspended } else { Reason::Pending };
        Finding::new(ConditionType::Placed, false, reason, message.trim_end().to_owned())
    };
    let to_cloud = if plan.to_cloud && pending > 0 {
        let message =
            format!("{pending} completions fit in no cluster of the fleet: a cloud cluster is needed");
        Finding::new(ConditionType::ToCloud, true, Reason::NoRoomAnywhere, message)
    } else {
        Finding::new(ConditionType::ToCloud, false, Reason::NotNeeded, "no cloud cluster is needed")
    };
    let unreachable = if silent.is_empty() {
        let message = "every cluster with open completions answers";
        Finding::new(ConditionType::Unreachable, false, Reason::AllClustersReachable, message)
    } else {
        let kept = format!("{silent} does not answer: what it holds is kept on record");
        let (reason, message) = match &situation.doubt {
            Some(doubt) => (Reason::SilenceDoubted, format!("{kept}. {doubt}")),
            None => (Reason::Unreachable, kept),
        };
        Finding::new(ConditionType::Unreachable, true, reason, message)
    };
    let suspended = if situation.job.spec.suspend && !ended {
        Finding::new(ConditionType::Suspended, true, Reason::Suspended, "spec.suspend is true")
    } else {
        Finding::new(ConditionType::Suspended, false, Reason::NotSuspended, "the job may run")
    };
    vec![ready, placed, complete, failed, suspended, to_cloud, unreachable]
}
