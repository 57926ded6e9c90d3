//! What the status of an autoscaler says, and what is read back from it.

use super::assess::Assessment;
use super::cluster::{ClusterWish, Measurement};
use super::conditions::{is_outdone, updated};
use super::decision::Decision;
use super::memory::{Memory, Recommended, ScaleChange};
use super::metric::{Goal, Source};
use super::pods::Measured;
use super::snapshot::ClusterSnapshot;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use portolan_api::MultiClusterHorizontalPodAutoscalerStatus;
use portolan_api::autoscaling::{CurrentMetric, Recommendation, ScaleEvent};
use portolan_api::conditions::{self, ConditionType, Finding};
use portolan_api::multiclusterhorizontalpodautoscaler::ClusterScale;
use std::collections::BTreeMap;

impl Memory {
    /// What the status remembers.
    #[must_use]
    pub fn of_status(status: &MultiClusterHorizontalPodAutoscalerStatus) -> Self {
        let clusters = status.clusters.iter().filter(|each| !each.recommendations.is_empty());
        let change = |event: &ScaleEvent| ScaleChange { change: i64::from(event.change), at: event.time.0 };
        Self {
            recommendations: status.recommendations.iter().map(recommended).collect(),
            clusters: clusters
                .map(|each| (each.cluster.clone(), each.recommendations.iter().map(recommended).collect()))
                .collect(),
            changes: status.scale_events.iter().map(change).collect(),
        }
    }
}

impl Decision {
    /// Writes the decision into the status. `clusters` are those that it was made on.
    pub fn write_to(
        &self,
        status: &mut MultiClusterHorizontalPodAutoscalerStatus,
        clusters: &[ClusterSnapshot],
        generation: Option<i64>,
        now: Timestamp,
    ) {
        status.observed_generation = generation;
        // A change that was refused before is told until it succeeds or is not wanted any more: what was found before it is
        // tried again says nothing about that.
        let tries = self.desired != self.current;
        let news = |finding: &&Finding| !(tries && is_outdone(finding, &status.conditions));
        let findings: Vec<Finding> = self.findings.iter().filter(news).cloned().collect();
        for finding in findings {
            conditions::set(&mut status.conditions, finding, generation, now);
        }
        status.current_replicas = number(self.current);
        status.desired_replicas = number(self.desired);
        status.min_replicas = Some(number(self.minimum.replicas));
        status.metrics_summary = Some(self.metrics_summary.clone());
        status.current_metrics = self.metrics.clone();
        let seen: BTreeMap<&str, Option<Timestamp>> =
            clusters.iter().map(|cluster| (cluster.name.as_str(), cluster.observed_at)).collect();
        let scale = |wish: &ClusterWish| {
            let observed_at = seen.get(wish.cluster.as_str()).copied().flatten();
            self.cluster_scale(wish, observed_at)
        };
        status.clusters = self.clusters.iter().map(scale).collect();
        status.recommendations = self.memory.recommendations.iter().map(recommendation).collect();
        status.scale_events = self.memory.changes.iter().map(scale_event).collect();
    }

    /// Remembers that the replicas were set as decided, and tells it. A change that was refused counts for no policy, and is
    /// not the time of the last one.
    pub fn carried_out(
        &mut self,
        status: &mut MultiClusterHorizontalPodAutoscalerStatus,
        generation: Option<i64>,
        now: Timestamp,
    ) {
        let change = i64::from(self.desired) - i64::from(self.current);
        self.memory.changes.push(ScaleChange { change, at: now });
        status.scale_events = self.memory.changes.iter().map(scale_event).collect();
        status.last_scale_time = Some(Time(now));
        let ready = self.findings.iter().find(|finding| finding.type_ == ConditionType::Ready);
        for finding in ready.cloned().into_iter().chain([updated(self.desired)]) {
            conditions::set(&mut status.conditions, finding, generation, now);
        }
    }

    fn cluster_scale(&self, wish: &ClusterWish, observed_at: Option<Timestamp>) -> ClusterScale {
        let pods = wish.measurements.values().find_map(|measurement| match measurement {
            Measurement::Pods(measured) => utilization(*measured),
            Measurement::Value { .. } => None,
        });
        let remembered = self.memory.clusters.get(&wish.cluster);
        ClusterScale {
            cluster: wish.cluster.clone(),
            current_replicas: number(wish.current),
            desired_replicas: number(wish.desired),
            average_utilization: pods,
            message: wish.message.clone(),
            observed_at: observed_at.map(Time),
            share: self.division.get(&wish.cluster).copied().map(number),
            recommendations: remembered.into_iter().flatten().map(recommendation).collect(),
        }
    }
}

/// The metrics as measured over all clusters, in the order of the spec.
pub(super) fn metrics(assessment: &Assessment<'_>) -> Vec<CurrentMetric> {
    let metrics = assessment.sources.iter();
    metrics.map(|(index, source)| current_metric(source, overall(assessment, *index))).collect()
}

/// The metrics in short, such as `cpu 63%/75%`.
pub(super) fn summary(assessment: &Assessment<'_>) -> String {
    let metrics = assessment.sources.iter().map(|(index, source)| {
        let current = current_metric(source, overall(assessment, *index));
        let (value, target) = match source.goal {
            Goal::Utilization(target) => {
                (current.average_utilization.map(|value| format!("{value}%")), format!("{target}%"))
            }
            Goal::Average(target) => (current.average_value.map(|value| value.0), text(u128::from(target)).0),
            Goal::Value(target) => (current.value.map(|value| value.0), text(u128::from(target)).0),
        };
        format!("{} {}/{target}", source.name, value.as_deref().unwrap_or("<unknown>"))
    });
    metrics.collect::<Vec<_>>().join(", ")
}

/// What was measured for a metric in all clusters.
fn overall(assessment: &Assessment<'_>, metric: usize) -> Option<Measurement> {
    let clusters = assessment.wishes.iter().filter_map(|wish| wish.measurements.get(&metric));
    let all = clusters.chain(assessment.measurements.get(&metric)).copied();
    all.reduce(|one, other| match (one, other) {
        (Measurement::Pods(one), Measurement::Pods(other)) => Measurement::Pods(Measured {
            pods: one.pods.saturating_add(other.pods),
            usage: one.usage.saturating_add(other.usage),
            requests: one.requests.saturating_add(other.requests),
        }),
        (Measurement::Value { value, replicas }, Measurement::Value { value: more, replicas: others }) => {
            let (value, replicas) = (value.saturating_add(more), replicas.saturating_add(others));
            Measurement::Value { value, replicas }
        }
        (one, _) => one,
    })
}

fn current_metric(source: &Source<'_>, measured: Option<Measurement>) -> CurrentMetric {
    let mut current = CurrentMetric {
        type_: source.type_,
        name: source.name.to_owned(),
        container: source.container.map(str::to_owned),
        ..CurrentMetric::default()
    };
    match (measured, source.goal) {
        (Some(Measurement::Pods(measured)), _) => {
            current.average_utilization = utilization(measured);
            current.average_value = measured.usage.checked_div(u128::from(measured.pods)).map(text);
        }
        (Some(Measurement::Value { value, replicas }), Goal::Average(_)) => {
            current.average_value = Some(text(u128::from(value).div_ceil(u128::from(replicas.max(1)))));
        }
        (Some(Measurement::Value { value, .. }), _) => current.value = Some(text(u128::from(value))),
        (None, _) => {}
    }
    current
}

fn utilization(measured: Measured) -> Option<i32> {
    let percent = measured.usage.saturating_mul(100).checked_div(measured.requests)?;
    Some(i32::try_from(percent).unwrap_or(i32::MAX))
}

/// A quantity of so many thousandths.
fn text(milli: u128) -> Quantity {
    Quantity(if milli.is_multiple_of(1000) { format!("{}", milli / 1000) } else { format!("{milli}m") })
}

fn number(replicas: u32) -> i32 {
    i32::try_from(replicas).unwrap_or(i32::MAX)
}

fn scale_event(each: &ScaleChange) -> ScaleEvent {
    ScaleEvent { change: i32::try_from(each.change).unwrap_or(0), time: Time(each.at) }
}

fn recommended(each: &Recommendation) -> Recommended {
    Recommended { replicas: u32::try_from(each.replicas).unwrap_or(0), at: each.time.0 }
}

fn recommendation(each: &Recommended) -> Recommendation {
    Recommendation { replicas: number(each.replicas), time: Time(each.at) }
}
