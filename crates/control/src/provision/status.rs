//! What users read of a CloudProvisioner beside its record: conditions, what waits, and clusters that nobody knows.

use super::observe::Observed;
use k8s_openapi::jiff::Timestamp;
use portolan_api::cloudprovisioner::{CloudPhase, CloudProvisionerStatus};
use portolan_api::conditions::{self, ConditionType, Finding};
use portolan_api::{Money, Reason};
use portolan_core::provision::{Failure, Obstacle, Plan, Waiting};
use portolan_runtime::Key;
use std::time::Duration;

/// What was spent is written at least so often; in between it follows from what is on record.
pub(super) const COST_PERIOD: Duration = Duration::from_secs(60);

/// So many workloads and clusters are listed.
const LISTED_AT_MOST: usize = 100;

/// What there is to tell.
pub(super) enum Report<'a> {
    /// The hub has no Cluster API.
    NoClusterApi(&'a str),
    /// The spec cannot be read.
    Invalid(String),
    /// A plan was made.
    Planned {
        /// The plan.
        plan: &'a Plan,
        /// What it was made on.
        observed: &'a Observed,
        /// Why the last orders could not be carried out.
        problem: Option<&'a str>,
    },
}

/// Lists what waits, and clusters that nobody knows.
pub(super) fn list(status: &mut CloudProvisionerStatus, waiting: &[(Key, Waiting)], orphans: Vec<String>) {
    status.waiting = waiting.iter().take(LISTED_AT_MOST).map(|(_, each)| each.workload.clone()).collect();
    status.orphans = orphans.into_iter().take(LISTED_AT_MOST).collect();
}

/// Writes the conditions.
pub(super) fn tell(
    status: &mut CloudProvisionerStatus,
    report: &Report<'_>,
    generation: Option<i64>,
    now: Timestamp,
) {
    status.observed_generation = generation;
    let findings = match report {
        Report::NoClusterApi(why) => vec![not_ready(Reason::ClusterApiNotFound, (*why).to_owned())],
        Report::Invalid(why) => vec![not_ready(Reason::InvalidSpec, why.clone())],
        Report::Planned { plan, observed, problem } => planned(plan, observed, *problem, status),
    };
    for finding in findings {
        conditions::set(&mut status.conditions, finding, generation, now);
    }
}

/// Whether a status differs from the one before in what was spent only, and that was written lately: it follows from the
/// rate that is on record, and to write it each time would wake those who watch.
pub(super) fn says_nothing_new(
    before: &CloudProvisionerStatus,
    after: &CloudProvisionerStatus,
    now: Timestamp,
) -> bool {
    let unspent = |status: &CloudProvisionerStatus| {
        let mut status = status.clone();
        status.cost_so_far = Money::default();
        (status.cost_counted, status.cost_counted_until) = (0, None);
        for burst in &mut status.bursts {
            (burst.cost, burst.counted) = (Money::default(), 0);
        }
        status
    };
    let age = before.cost_counted_until.as_ref().map(|until| now.duration_since(until.0));
    let lately = age.is_none_or(|age| Duration::try_from(age).is_ok_and(|age| age < COST_PERIOD));
    let free = before.cost_per_hour == Money::default();
    (lately || free) && unspent(before) == unspent(after)
}

fn not_ready(reason: Reason, message: String) -> Finding {
    Finding::new(ConditionType::Ready, false, reason, message)
}

fn planned(
    plan: &Plan,
    observed: &Observed,
    problem: Option<&str>,
    status: &CloudProvisionerStatus,
) -> Vec<Finding> {
    let (reason, message) = phase(plan, observed, status);
    let is_ready = matches!(plan.phase, CloudPhase::Idle | CloudPhase::Ready | CloudPhase::Scaling);
    let obstacle = plan.obstacle.as_ref().map(|obstacle| {
        let why = match obstacle {
            Obstacle::NameTaken(_) | Obstacle::NameShared(_) => Reason::CloudClusterNameTaken,
            Obstacle::NotOwned { .. } => Reason::ForeignClusterNotOwned,
            Obstacle::Paused => Reason::Paused,
            Obstacle::Outdated(_) => Reason::CacheNotSynced,
            Obstacle::ClusterNotOwned(_) => Reason::CloudClusterNotOwned,
            Obstacle::ClusterUnreadable { .. } => Reason::CloudRequestFailed,
            Obstacle::WorkloadsRemain { .. } => Reason::WorkloadsRemain,
        };
        not_ready(why, obstacle.to_string())
    });
    let lost = (!plan.lost.is_empty()).then(|| {
        let names: Vec<&str> = plan.lost.iter().take(LISTED_AT_MOST).map(String::as_str).collect();
        format!(
            "nodes have not been ready for longer than spec.provisionTimeout, and are left alone since pods may run there; \
             delete those of these Machines that do not come back: {}",
            names.join(", ")
        )
    });
    let ready = match (obstacle, problem, lost) {
        (Some(obstacle), _, _) => obstacle,
        (None, Some(problem), _) => not_ready(Reason::CloudRequestFailed, problem.to_owned()),
        (None, None, Some(lost)) => not_ready(Reason::NodesNotReady, lost),
        (None, None, None) => Finding::new(ConditionType::Ready, is_ready, reason, message.clone()),
    };
    let exists = matches!(plan.phase, CloudPhase::Ready | CloudPhase::Scaling);
    let provisioned = Finding::new(ConditionType::Provisioned, exists, reason, message.clone());
    let works =
        matches!(plan.phase, CloudPhase::Provisioning | CloudPhase::Scaling | CloudPhase::Deprovisioning);
    let progressing = if observed.settings.paused {
        Finding::new(
            ConditionType::Progressing,
            false,
            Reason::Paused,
            "spec.paused is true: nothing is made or removed",
        )
    } else {
        Finding::new(ConditionType::Progressing, works, reason, message)
    };
    let failed = match (&plan.record.last_failure, &plan.record.retry_at) {
        (Some((Failure { reason, message }, _)), Some(at)) => {
            let message = format!("{reason}: {message}. It is tried again at {at}");
            Finding::new(ConditionType::Failed, true, Reason::ProvisionFailed, message)
        }
        _ => {
            Finding::new(ConditionType::Failed, false, Reason::NotFailed, "the last cluster was provisioned")
        }
    };
    vec![ready, provisioned, progressing, failed]
}

/// How far the cluster is: a word and a sentence.
fn phase(plan: &Plan, observed: &Observed, status: &CloudProvisionerStatus) -> (Reason, String) {
    let name = status.cluster.as_ref().map(|cluster| cluster.name.clone()).unwrap_or_default();
    let nodes = match status.silent_since {
        Some(_) => {
            "it is silent, or its nodes are not listed yet: nothing is added or removed meanwhile".to_owned()
        }
        None => format!("{} of {} nodes are ready", status.ready_nodes, status.desired_nodes),
    };
    match plan.phase {
        CloudPhase::Idle => (Reason::NotNeeded, "no cloud cluster is needed".to_owned()),
        CloudPhase::Ready => (Reason::Ready, format!("Cluster {name} has joined; {nodes}")),
        CloudPhase::Scaling => (Reason::Scaling, format!("Cluster {name} has joined; {nodes}")),
        CloudPhase::Provisioning => {
            let seen = observed.snapshot.clusters.get(&name);
            let words = seen.and_then(|seen| seen.failure.as_ref().or(seen.progress.as_ref()));
            let words = words.or(observed.snapshot.refused.as_ref());
            let far =
                words.map(|Failure { reason, message }| format!(": {reason}: {message}")).unwrap_or_default();
            (Reason::Provisioning, format!("Cluster {name} is being provisioned{far}"))
        }
        CloudPhase::Deprovisioning => {
            let why = status.cluster.as_ref().and_then(|cluster| cluster.deprovisioning.as_ref());
            let why = why.map(|why| why.reason.clone()).unwrap_or_default();
            (Reason::Deprovisioning, format!("Cluster {name} is being removed: {why}"))
        }
        CloudPhase::Failed => {
            let failure = plan.record.last_failure.as_ref().map(|(failure, _)| failure);
            let why =
                failure.map(|Failure { reason, message }| format!("{reason}: {message}")).unwrap_or_default();
            (Reason::ProvisionFailed, format!("the last cluster was not provisioned: {why}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_core::provision::{Ending, Event, LeftBecause};
    use std::collections::BTreeSet;

    #[test]
    fn every_reason_of_the_plan_is_in_the_list_of_reasons() {
        let failure = || Failure { reason: String::new(), message: String::new() };
        let small = || "small".to_owned();
        let events = [
            Event::ClusterRequested { name: small(), nodes: 1, cost: 1 },
            Event::ClusterJoined { seconds: 1 },
            Event::ClusterFailed(failure()),
            Event::NodesFailed { machine_type: small(), failure: failure() },
            Event::ScaledOut { machine_type: small(), nodes: 1 },
            Event::ScaledIn { machines: BTreeSet::new() },
            Event::ScaleInCalledOff,
            Event::Deprovisioning(Ending::Unused),
            Event::DeprovisioningCalledOff,
            Event::ClusterDeleted { cost: Money::default() },
        ];
        let endings = [
            Ending::Unused,
            Ending::Failed,
            Ending::ProvisionerDeleted,
            Ending::Unpeered,
            Ending::DeletedElsewhere,
        ];
        let left = [
            LeftBecause::NoMachineType { lacking: Vec::new() },
            LeftBecause::NodeLimit,
            LeftBecause::CostLimit,
            LeftBecause::NodesDidNotHelp { until: Timestamp::UNIX_EPOCH },
        ];
        let all = events.iter().map(Event::reason).chain(endings.map(Ending::reason));
        for reason in all.chain(left.iter().map(LeftBecause::reason)) {
            assert!(Reason::parse(reason).is_some(), "{reason}");
        }
    }

    #[test]
    fn what_was_spent_is_written_once_a_minute_and_what_changes_at_once() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let time = |second: i64| Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(second)));
        let before = CloudProvisionerStatus {
            cost_per_hour: Money::from_micros(60_000),
            cost_counted_until: time(1000),
            ..CloudProvisionerStatus::default()
        };
        let later =
            CloudProvisionerStatus { cost_counted: 7, cost_counted_until: time(1030), ..before.clone() };
        assert!(says_nothing_new(&before, &later, at(1030)));
        assert!(!says_nothing_new(&before, &later, at(1060)));
        let free = CloudProvisionerStatus { cost_per_hour: Money::default(), ..before.clone() };
        let still = CloudProvisionerStatus { cost_counted_until: time(9000), ..free.clone() };
        assert!(says_nothing_new(&free, &still, at(9000)), "nothing is spent");
        assert!(!says_nothing_new(&before, &CloudProvisionerStatus { nodes: 2, ..later }, at(1030)));
    }
}
