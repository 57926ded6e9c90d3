//! What is known of the load in one cluster.

use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How old a number may be. What is older counts as not measured: it is neither trusted nor taken for zero.
pub const NUMBERS_VALID_FOR: SignedDuration = SignedDuration::from_mins(5);

/// What is known of one cluster that holds replicas of the workload, or is one of its locations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSnapshot {
    /// The name of the cluster.
    pub name: String,
    /// How many replicas it is to run, by the placement on record.
    pub replicas: u32,
    /// Whether the member answers. If not, all numbers are the last ones known.
    pub reachable: bool,
    /// Why its pods cannot be read, if it answers otherwise.
    pub error: Option<String>,
    /// When the member last reported its pods.
    pub observed_at: Option<Timestamp>,
    /// How its clock stands.
    pub clock: MemberClock,
    /// The pods of the workload.
    pub pods: Vec<PodSnapshot>,
    /// What was read for each metric, in the order of the spec.
    pub readings: Vec<Reading>,
}

/// A pod of the workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSnapshot {
    /// The name of the pod.
    pub name: String,
    /// How far it has come.
    pub phase: PodPhase,
    /// Whether it is being deleted.
    pub deleted: bool,
    /// When the kubelet started it.
    pub started_at: Option<Timestamp>,
    /// Its condition Ready, if it has one.
    pub readiness: Option<Readiness>,
    /// What it requests. Pods of one template share it.
    pub requests: Arc<PodRequests>,
}

/// How far a pod has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodPhase {
    /// It waits for a node or for its containers.
    Pending,
    /// Its containers were started.
    Running,
    /// It has succeeded or failed.
    Finished,
}

/// The condition Ready of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Whether the pod is ready.
    pub ready: bool,
    /// Since when.
    pub since: Timestamp,
}

/// What a pod requests, by resource, in thousandths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodRequests {
    /// Requests of the pod as a whole; where there is one, those of the containers do not count for it.
    pub pod: BTreeMap<String, u64>,
    /// Requests by container, with restartable init containers.
    pub containers: BTreeMap<String, BTreeMap<String, u64>>,
}

/// What was read for one metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A number for each pod, by its name.
    Pods(BTreeMap<String, Sample>),
    /// A value of an object, or from outside the cluster.
    Value {
        /// In thousandths.
        value: u64,
        /// When it was measured.
        at: Timestamp,
    },
    /// It could not be read, and why.
    Failed(String),
}

/// A number that was measured for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// In thousandths.
    pub value: u64,
    /// When the measurement ended.
    pub at: Timestamp,
    /// Over which time it was measured.
    pub window: SignedDuration,
}

/// The use of a resource by a pod, or by one container of it, from the use of each container; in thousandths.
///
/// None if a container was not measured: part of a pod's use is not its use.
#[must_use]
pub fn usage(
    containers: &BTreeMap<String, BTreeMap<String, u64>>,
    container: Option<&str>,
    resource: &str,
) -> Option<u64> {
    if let Some(container) = container {
        return containers.get(container)?.get(resource).copied();
    }
    let mut used = containers.values().map(|each| each.get(resource).copied());
    let first = used.next()??;
    used.try_fold(first, |sum, each| Some(sum.saturating_add(each?)))
}

/// How the clock of a member stands to that of the hub, by the times of its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberClock {
    /// The time of its newest number, and when that was last read.
    newest: Option<(Timestamp, Timestamp)>,
    /// How old the newest number seemed when it came.
    behind: SignedDuration,
}

impl MemberClock {
    /// How it stands after an answer. A number that is newer than those of the last look was measured since then, whatever
    /// its time: it grows old from now on by the clock of the hub. Nothing is known of the first numbers, nor of those after
    /// a long silence.
    #[must_use]
    pub fn after(self, readings: &[Reading], now: Timestamp) -> Self {
        let Some(newest) = readings.iter().filter_map(Reading::newest).max() else { return self };
        let moves = |(before, read): (Timestamp, Timestamp)| newest > before && is_valid(read, now);
        let behind = match self.newest {
            Some(last) if moves(last) => now.duration_since(newest).max(SignedDuration::ZERO),
            _ => self.behind,
        };
        let latest = self.newest.map_or(newest, |(before, _)| before.max(newest));
        Self { newest: Some((latest, now)), behind }
    }
}

impl Reading {
    fn newest(&self) -> Option<Timestamp> {
        match self {
            Self::Pods(samples) => samples.values().map(|sample| sample.at).max(),
            Self::Value { at, .. } => Some(*at),
            Self::Failed(_) => None,
        }
    }
}

impl PodRequests {
    /// The request for a resource by the pod, or by one container of it.
    ///
    /// # Errors
    /// The container that has no request.
    pub(super) fn of(&self, container: Option<&str>, resource: &str) -> Result<u64, String> {
        if let Some(name) = container {
            let request = self.containers.get(name).and_then(|each| each.get(resource));
            return request.copied().ok_or_else(|| name.to_owned());
        }
        if let Some(request) = self.pod.get(resource) {
            return Ok(*request);
        }
        let requests =
            self.containers.iter().map(|(name, each)| each.get(resource).ok_or_else(|| name.clone()));
        requests.sum()
    }
}

/// Whether a number of that time is still used.
pub(super) fn is_valid(at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(at) <= NUMBERS_VALID_FOR
}

impl ClusterSnapshot {
    /// Whether a number that the member says is of that time is still used. Its clock may be behind the hub's, or ahead of
    /// it: no number is newer than the answer that it came with.
    pub(super) fn is_valid(&self, at: Timestamp, now: Timestamp) -> bool {
        let at = at.checked_add(self.clock.behind).unwrap_or(at);
        is_valid(self.observed_at.map_or(at, |observed| at.min(observed)), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(containers: &[(&str, &[(&str, u64)])]) -> BTreeMap<String, BTreeMap<String, u64>> {
        let each = |resources: &[(&str, u64)]| {
            resources.iter().map(|(name, value)| ((*name).into(), *value)).collect()
        };
        containers.iter().map(|(name, resources)| ((*name).into(), each(resources))).collect()
    }

    #[test]
    fn a_pod_uses_what_its_containers_use_and_nothing_is_known_if_one_is_missing() {
        let all = amounts(&[("web", &[("cpu", 300), ("memory", 7)]), ("log", &[("cpu", 50)])]);
        assert_eq!(usage(&all, None, "cpu"), Some(350));
        assert_eq!(usage(&all, None, "memory"), None);
        assert_eq!(usage(&all, Some("web"), "memory"), Some(7));
        assert_eq!(usage(&all, Some("other"), "cpu"), None);
        assert_eq!(usage(&BTreeMap::new(), None, "cpu"), None);
    }

    #[test]
    fn requests_are_summed_and_a_container_without_one_is_named() {
        let containers = amounts(&[("log", &[("cpu", 50)]), ("web", &[("cpu", 300), ("memory", 7)])]);
        let requests = PodRequests { pod: BTreeMap::new(), containers };
        assert_eq!(requests.of(None, "cpu"), Ok(350));
        assert_eq!(requests.of(None, "memory"), Err("log".to_owned()));
        assert_eq!(requests.of(Some("web"), "memory"), Ok(7));
        assert_eq!(requests.of(Some("log"), "memory"), Err("log".to_owned()));
        let whole = PodRequests { pod: BTreeMap::from([("memory".to_owned(), 9)]), ..requests };
        assert_eq!(whole.of(None, "memory"), Ok(9));
    }
}
