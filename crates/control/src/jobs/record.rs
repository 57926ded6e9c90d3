//! Between the status of a job and the terms of its plan.

use super::desired::template_digest;
use super::facts::JobFacts;
use portolan_api::MultiClusterJob;
use portolan_api::Reason;
use portolan_api::conditions::{self, ConditionType};
use portolan_api::multiclusterjob::{
    CompletionMode, JobPlacementStatus, JobRelease, MultiClusterJobStatus, OnJobFailure,
};
use portolan_core::capacity::Shape;
use portolan_core::jobs::{End, JobSnapshot, Part, Record, Release, Work};
use portolan_core::placement::PlacementRequest;
use std::collections::{BTreeMap, BTreeSet};

/// How often open completions go elsewhere when the spec does not say.
const RETRY_LIMIT: i32 = 3;

/// What the job asks for.
pub(super) fn work(job: &MultiClusterJob, shape: &Shape, leaving: BTreeSet<String>) -> Work {
    let spec = &job.spec;
    Work {
        request: PlacementRequest {
            shape: shape.clone(),
            replicas: 0,
            mode: spec.completions_mode,
            weights: BTreeMap::new(),
            placement: spec.placement.clone(),
            bursting: false,
        },
        completions: count(spec.completions),
        parallelism: count(spec.parallelism),
        indexed: spec.completion_mode == CompletionMode::Indexed,
        suspended: spec.suspend,
        retries: (spec.on_failure == OnJobFailure::RetryElsewhere)
            .then(|| count(spec.retry_limit.unwrap_or(RETRY_LIMIT))),
        leaving,
    }
}

/// What is on record of the job.
pub(super) fn record(status: Option<&MultiClusterJobStatus>) -> Record {
    let Some(status) = status else { return Record::default() };
    let placements = status.placements.iter();
    Record {
        parts: placements.map(|placed| (placed.cluster.clone(), part(placed))).collect(),
        retries: count(status.retries),
        end: end(status),
    }
}

fn part(placed: &JobPlacementStatus) -> Part {
    Part {
        completions: count(placed.completions),
        parallelism: count(placed.parallelism),
        succeeded: count(placed.succeeded),
        failed: count(placed.failed),
        attempt: count(placed.attempt),
        finished_before: count(placed.finished_before),
        failed_before: count(placed.failed_before),
        released: placed.released.map(|released| match released {
            JobRelease::Failed => Release::Failed,
            JobRelease::Silent => Release::Silent,
            JobRelease::NoRoom => Release::NoRoom,
            JobRelease::Refused => Release::Refused,
        }),
        cause: placed.cause,
        given: count(placed.given),
    }
}

fn end(status: &MultiClusterJobStatus) -> Option<End> {
    if conditions::is_true(&status.conditions, ConditionType::Complete) {
        return Some(End::Complete);
    }
    let failed = conditions::find(&status.conditions, ConditionType::Failed)?;
    let ended = conditions::is_true(&status.conditions, ConditionType::Failed);
    let reason = Reason::parse(&failed.reason).unwrap_or(Reason::Failed);
    ended.then(|| End::Failed { reason, message: failed.message.clone() })
}

/// A part, as the status tells it.
pub(super) fn write(part: &Part, placed: &mut JobPlacementStatus) {
    placed.completions = signed(part.completions);
    placed.parallelism = signed(part.parallelism);
    placed.succeeded = signed(part.succeeded);
    placed.failed = signed(part.failed);
    placed.attempt = signed(part.attempt);
    placed.finished_before = signed(part.finished_before);
    placed.failed_before = signed(part.failed_before);
    placed.released = part.released.map(|released| match released {
        Release::Failed => JobRelease::Failed,
        Release::Silent => JobRelease::Silent,
        Release::NoRoom => JobRelease::NoRoom,
        Release::Refused => JobRelease::Refused,
    });
    placed.cause = part.cause;
    placed.given = signed(part.given);
}

/// A Job of a member, in the terms of the plan.
pub(super) fn seen(facts: &JobFacts, job: &MultiClusterJob) -> JobSnapshot {
    JobSnapshot {
        attempt: facts.attempt,
        finished_before: facts.finished_before,
        completions: facts.completions,
        succeeded: facts.succeeded,
        failed: facts.failed,
        suspended: facts.suspended,
        over: facts.is_over(),
        complete: facts.complete,
        failure: facts.failure.as_ref().map(|(reason, message)| format!("{reason}: {message}")),
        outdated: facts.template.as_deref() != Some(&template_digest(job)),
    }
}

pub(super) fn count(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

pub(super) fn signed(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
