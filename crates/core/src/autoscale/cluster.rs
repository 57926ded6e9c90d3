//! How many replicas the load of one cluster asks for.

use super::metric::{Goal, Source, unknown};
use super::pods::{Measured, groups};
use super::proposal::{by_average, by_pods, by_value};
use super::ratio::Tolerances;
use super::snapshot::{ClusterSnapshot, NUMBERS_VALID_FOR, PodPhase, Reading};
use jiff::Timestamp;
use portolan_api::Reason;
use std::collections::BTreeMap;

/// What the load of one cluster asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterWish {
    /// The name of the cluster.
    pub cluster: String,
    /// How many replicas it is to run, by the placement on record.
    pub current: u32,
    /// How many it is to run by its load; as many as now while that is not known.
    pub desired: u32,
    /// How many its load needs where every small difference counts: in these proportions too few replicas are shared.
    pub need: u32,
    /// What users are told about numbers that are missing or old.
    pub message: Option<String>,
    /// Which metric asks for the most.
    pub(super) metric: Option<usize>,
    /// What was measured, by metric.
    pub(super) measurements: BTreeMap<usize, Measurement>,
    /// Metrics that are not known.
    pub(super) problems: Vec<Problem>,
}

/// What was measured for a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measurement {
    /// Of the pods.
    Pods(Measured),
    /// A value, in thousandths, and how many replicas there were.
    Value { value: u64, replicas: u32 },
}

/// A metric that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) metric: usize,
    pub(super) reason: Reason,
    pub(super) message: String,
}

/// What a metric proposes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proposal {
    pub(super) desired: u32,
    pub(super) need: u32,
    pub(super) measurement: Measurement,
}

/// What the load of a cluster asks for: the largest proposal of all metrics. While one is not known, the others do not
/// make replicas fewer; nor does a cluster that is silent.
pub(super) fn wish(
    sources: &BTreeMap<usize, Source<'_>>,
    cluster: &ClusterSnapshot,
    tolerances: Tolerances,
    now: Timestamp,
) -> ClusterWish {
    let current = cluster.replicas;
    let mut wish = ClusterWish { cluster: cluster.name.clone(), current, ..ClusterWish::default() };
    for (index, source) in sources {
        let reading = cluster.readings.get(*index);
        match proposal(source, cluster, reading, tolerances, now) {
            Ok(None) => {}
            Ok(Some(proposal)) => {
                if wish.metric.is_none() || proposal.desired > wish.desired {
                    (wish.metric, wish.desired) = (Some(*index), proposal.desired);
                }
                wish.need = wish.need.max(proposal.need);
                wish.measurements.insert(*index, proposal.measurement);
            }
            Err(message) => {
                wish.problems.push(Problem { metric: *index, reason: unknown(source.type_), message });
            }
        }
    }
    if !wish.problems.is_empty() || !cluster.reachable {
        wish.desired = wish.desired.max(current);
        wish.need = wish.need.max(current);
    }
    if cluster.reachable {
        wish.message = wish.problems.first().map(|problem| problem.message.clone());
    } else {
        // Its metrics are not broken: nobody could ask for them.
        wish.problems.clear();
        wish.message = Some(silence(&wish, cluster, now));
    }
    wish
}

fn silence(wish: &ClusterWish, cluster: &ClusterSnapshot, now: Timestamp) -> String {
    let minutes = NUMBERS_VALID_FOR.as_mins();
    let silent = || "it is silent".to_owned();
    let why =
        cluster.error.as_ref().map_or_else(silent, |error| format!("its pods cannot be read ({error})"));
    if wish.metric.is_none() {
        return format!("{why} and its last numbers are older than {minutes}m: its replicas are kept");
    }
    let age = cluster.observed_at.map_or(0, |at| now.duration_since(at).as_secs().max(0));
    format!("{why}: its numbers of {age}s ago count until they are {minutes}m old, and its replicas are kept")
}

/// What a metric proposes in a cluster; nothing where it needs pods and none are to run.
fn proposal(
    source: &Source<'_>,
    cluster: &ClusterSnapshot,
    reading: Option<&Reading>,
    tolerances: Tolerances,
    now: Timestamp,
) -> Result<Option<Proposal>, String> {
    let current = cluster.replicas;
    match reading {
        Some(Reading::Value { value, at }) if cluster.is_valid(*at, now) => {
            by_reading(source, current, ready_pods(cluster), *value, tolerances).map(Some)
        }
        _ if current == 0 => Ok(None),
        Some(Reading::Pods(samples)) => {
            let groups = groups(source, cluster, samples, now)?;
            let measurement = Measurement::Pods(groups.measured);
            let desired = by_pods(current, &groups, tolerances)?;
            Ok(Some(Proposal { desired, need: by_pods(current, &groups, Tolerances::NONE)?, measurement }))
        }
        Some(Reading::Value { .. }) => Err(format!(
            "the last value of {} is older than {}m",
            source.describe(),
            NUMBERS_VALID_FOR.as_mins()
        )),
        Some(Reading::Failed(message)) => Err(format!("unable to get {}: {message}", source.describe())),
        None => Err(format!("{} was not read yet", source.describe())),
    }
}

/// What a metric with a single value proposes.
pub(super) fn by_reading(
    source: &Source<'_>,
    current: u32,
    ready_pods: u32,
    value: u64,
    tolerances: Tolerances,
) -> Result<Proposal, String> {
    let propose = |tolerances: Tolerances| match source.goal {
        Goal::Value(target) => Ok(by_value(current, ready_pods, value, target, tolerances)),
        Goal::Average(target) => Ok(by_average(current, value, target, tolerances)),
        Goal::Utilization(_) => Err(format!("{} has no requests to compare it with", source.describe())),
    };
    let measurement = Measurement::Value { value, replicas: current };
    Ok(Proposal { desired: propose(tolerances)?, need: propose(Tolerances::NONE)?, measurement })
}

/// How many pods run and are ready.
pub(super) fn ready_pods(cluster: &ClusterSnapshot) -> u32 {
    let ready = cluster.pods.iter().filter(|pod| {
        pod.phase == PodPhase::Running && pod.readiness.is_some_and(|readiness| readiness.ready)
    });
    u32::try_from(ready.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "cluster_tests.rs"]
mod tests;
