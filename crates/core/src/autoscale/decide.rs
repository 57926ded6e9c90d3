//! The decision itself.

use super::assess::Assessment;
use super::behavior::Rules;
use super::bounds::Bounds;
use super::combine::Count;
use super::conditions;
use super::decision::Decision;
use super::memory::{Memory, Recommended, remember};
use super::metric;
use super::report;
use super::schedule::minimum;
use super::snapshot::{ClusterSnapshot, Reading};
use super::stabilize::stabilize;
use super::total;
use jiff::{SignedDuration, Timestamp};
use portolan_api::conditions::{ConditionType, Finding};
use portolan_api::placement::ReplicasMode;
use portolan_api::{MultiClusterHorizontalPodAutoscalerSpec, Reason};
use std::collections::BTreeMap;

/// After which time metrics are looked at again.
const SYNC_PERIOD: SignedDuration = SignedDuration::from_secs(15);

/// All that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// What the autoscaler is asked for.
    pub spec: &'a MultiClusterHorizontalPodAutoscalerSpec,
    /// The replicas in the spec of the workload.
    pub replicas: u32,
    /// Whether they are for each location or for all.
    pub mode: ReplicasMode,
    /// How many locations the workload has.
    pub locations: u32,
    /// The clusters that hold replicas, and the locations.
    pub clusters: &'a [ClusterSnapshot],
    /// What was read once for all clusters, by the position of the metric in the spec.
    pub readings: &'a BTreeMap<usize, Reading>,
    /// What is remembered.
    pub memory: &'a Memory,
    /// The time.
    pub now: Timestamp,
}

/// Decides how many replicas a workload is to have.
#[must_use]
pub fn decide(known: &Known<'_>) -> Decision {
    let Known { spec, replicas: current, now, .. } = *known;
    let metrics = metric::effective(&spec.metrics);
    let rules = Rules::of(spec.behavior.as_ref());
    let most = u32::try_from(spec.max_replicas).unwrap_or(0);
    let minimum = minimum(u32::try_from(spec.min_replicas).unwrap_or(0), most, &spec.schedules, now);
    let count = Count { replicas: current, mode: known.mode, locations: known.locations };
    let mut assessment =
        Assessment::of(&metrics, count, known.clusters, known.readings, rules.tolerances(), now);
    let mut memory = known.memory.clone().not_after(now);
    memory.changes = rules.relevant(&memory.changes, now);
    if known.mode == ReplicasMode::Total {
        total::keep_last_replicas(&mut assessment.wishes, minimum.replicas);
    }
    // What the windows of later decisions look at is the number without any window.
    let recommended = assessment.recommend(count);
    match known.mode {
        ReplicasMode::Total => total::stabilize_clusters(&mut assessment.wishes, &rules, &mut memory, now),
        ReplicasMode::PerLocation => memory.clusters.clear(),
    }
    let wanted = assessment.recommend(count);

    // Only the minimum of the spec switches it off: a schedule wakes a workload that may have no replicas.
    let outcome = if current == 0 && spec.min_replicas > 0 {
        Outcome::outside(0, None, vec![conditions::disabled()])
    } else if current > most {
        let active = conditions::scaling_active(&assessment, wanted > current);
        let cause = "Current number of replicas above Spec.MaxReplicas";
        Outcome::outside(most, Some(cause), vec![active, conditions::limited(Reason::TooManyReplicas)])
    } else if current < minimum.replicas {
        let active = conditions::scaling_active(&assessment, wanted > current);
        let cause = "Current number of replicas below Spec.MinReplicas";
        let findings = vec![active, conditions::limited(Reason::TooFewReplicas)];
        Outcome::outside(minimum.replicas, Some(cause), findings)
    } else if !assessment.is_active() {
        Outcome::outside(current, None, vec![conditions::scaling_active(&assessment, false)])
    } else {
        if memory.recommendations.is_empty() {
            memory.recommendations.push(Recommended { replicas: current, at: now });
        }
        let (up, down) = (rules.up_window(), rules.down_window());
        let bounds = Bounds { least: minimum.replicas, most };
        let stabilized = stabilize(current, wanted, &memory.recommendations, up, down, now);
        memory.recommendations = remember(&memory.recommendations, recommended, up, down, now);
        let (desired, reason) = bounds.apply(current, stabilized, &rules, &memory, now);
        let findings = vec![
            conditions::able_to_scale(
                current,
                if recommended < current { recommended } else { wanted },
                stabilized,
            ),
            conditions::scaling_active(&assessment, wanted > current),
            conditions::limited(reason),
        ];
        Outcome { desired, cause: cause(&assessment, current, desired), findings }
    };
    let Outcome { desired, cause, mut findings } = outcome;
    if let Some(active) = findings.iter().find(|finding| finding.type_ == ConditionType::ScalingActive) {
        findings.insert(0, conditions::ready(active, &minimum));
    }
    let division = match known.mode {
        ReplicasMode::Total => total::division(desired, &assessment.wishes, &memory),
        ReplicasMode::PerLocation => BTreeMap::new(),
    };
    let next = now.checked_add(SYNC_PERIOD).unwrap_or(now);
    Decision {
        current,
        desired,
        cause,
        division,
        findings,
        memory,
        metrics: report::metrics(&assessment),
        metrics_summary: report::summary(&assessment),
        look_again_at: minimum.changes_at.map_or(next, |change| change.min(next)),
        minimum,
        clusters: assessment.wishes,
    }
}

struct Outcome {
    desired: u32,
    cause: Option<String>,
    findings: Vec<Finding>,
}

impl Outcome {
    /// What is decided without metrics.
    fn outside(desired: u32, cause: Option<&str>, mut findings: Vec<Finding>) -> Self {
        findings.insert(0, conditions::target_found());
        Self { desired, cause: cause.map(str::to_owned), findings }
    }
}

/// Why replicas change, as the HorizontalPodAutoscaler says it.
fn cause(assessment: &Assessment<'_>, current: u32, desired: u32) -> Option<String> {
    if desired == current {
        return None;
    }
    if desired < current {
        return Some("All metrics below target".to_owned());
    }
    let (source, cluster) = assessment.leading()?;
    let place = cluster.map_or(String::new(), |cluster| format!(" in cluster {cluster}"));
    Some(format!("{} above target{place}", source.describe()))
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
