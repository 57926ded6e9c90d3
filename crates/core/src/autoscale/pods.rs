//! Which pods tell of the load.

use super::metric::{Goal, Source};
use super::snapshot::{ClusterSnapshot, PodPhase, PodSnapshot, Sample};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// For how long after its start a pod may use CPU for starting rather than for load.
const CPU_INITIALIZATION_PERIOD: SignedDuration = SignedDuration::from_mins(5);

/// For how long after its start a pod that is not ready counts as one that never was.
const INITIAL_READINESS_DELAY: SignedDuration = SignedDuration::from_secs(30);

/// A group of pods: how many there are, and what they use and would use on target.
///
/// The unit is the same for both and depends on the metric: with a utilization, hundredths of thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) pods: u32,
    pub(super) usage: u128,
    pub(super) target: u128,
}

impl Load {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            pods: self.pods.saturating_add(other.pods),
            usage: self.usage.saturating_add(other.usage),
            target: self.target.saturating_add(other.target),
        }
    }

    /// The same pods without any load.
    pub(super) fn idle(self) -> Self {
        Self { usage: 0, ..self }
    }
}

/// The pods of a cluster by what their numbers are worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Groups {
    /// Pods whose numbers count.
    pub(super) ready: Load,
    /// Pods that are not ready yet: they have no load, but will take some.
    pub(super) unready: Load,
    /// Pods without a number, with the load that is assumed where replicas would become fewer.
    pub(super) missing: Load,
    /// What the pods whose numbers count use and request, in thousandths: for the status.
    pub(super) measured: Measured,
}

/// What pods were measured to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Measured {
    pub(super) pods: u32,
    pub(super) usage: u128,
    pub(super) requests: u128,
}

/// Sorts the pods of a cluster by what their numbers are worth.
///
/// # Errors
/// A sentence: a container has no request.
pub(super) fn groups(
    source: &Source<'_>,
    cluster: &ClusterSnapshot,
    samples: &BTreeMap<String, Sample>,
    now: Timestamp,
) -> Result<Groups, String> {
    let mut groups = Groups::default();
    for pod in &cluster.pods {
        if pod.deleted || pod.phase == PodPhase::Finished {
            continue;
        }
        let scale = Scale::of(source, pod)?;
        let sample = samples.get(&pod.name).filter(|sample| cluster.is_valid(sample.at, now));
        let (group, usage) = match sample {
            _ if pod.phase == PodPhase::Pending => (&mut groups.unready, 0),
            None => (&mut groups.missing, scale.assumed),
            Some(sample) if source.is_cpu() && !tells_of_load(pod, sample, now) => (&mut groups.unready, 0),
            Some(sample) => {
                groups.measured.pods += 1;
                groups.measured.usage += u128::from(sample.value);
                groups.measured.requests += scale.request;
                (&mut groups.ready, u128::from(sample.value) * scale.unit)
            }
        };
        *group = group.plus(Load { pods: 1, usage, target: scale.target });
    }
    Ok(groups)
}

/// How a number of one pod is compared.
struct Scale {
    request: u128,
    /// By what a number is multiplied to be in the unit of the load.
    unit: u128,
    /// The load on target.
    target: u128,
    /// The load that is assumed where it is not known and replicas would become fewer.
    assumed: u128,
}

impl Scale {
    fn of(source: &Source<'_>, pod: &PodSnapshot) -> Result<Self, String> {
        match source.goal {
            Goal::Utilization(percent) => {
                let name = source.name;
                let request = pod.requests.of(source.container, name).map_err(|container| {
                    format!("missing request for {name} in container {container} of pod {}", pod.name)
                })?;
                let request = u128::from(request);
                let target = request * u128::from(percent);
                Ok(Self { request, unit: 100, target, assumed: request * u128::from(percent.max(100)) })
            }
            Goal::Average(target) | Goal::Value(target) => {
                let target = u128::from(target);
                Ok(Self { request: 0, unit: 1, target, assumed: target })
            }
        }
    }
}

/// Whether the CPU that a pod used is that of its load, and not that of its start.
fn tells_of_load(pod: &PodSnapshot, sample: &Sample, now: Timestamp) -> bool {
    let (Some(readiness), Some(started)) = (pod.readiness, pod.started_at) else { return false };
    if now.duration_since(started) < CPU_INITIALIZATION_PERIOD {
        // All of the measurement has to be from the time after it became ready.
        readiness.ready && sample.at.duration_since(readiness.since) >= sample.window
    } else {
        readiness.ready || readiness.since.duration_since(started) >= INITIAL_READINESS_DELAY
    }
}
