//! What all metrics say, cluster by cluster and for all clusters together.

use super::cluster::{ClusterWish, Measurement, Problem, by_reading, ready_pods, wish};
use super::combine::Count;
use super::metric::{Source, unknown};
use super::ratio::Tolerances;
use super::snapshot::{ClusterSnapshot, Reading, is_valid};
use jiff::Timestamp;
use portolan_api::autoscaling::Metric;
use std::collections::BTreeMap;

/// What all metrics say.
#[derive(Debug)]
pub(super) struct Assessment<'a> {
    /// The metrics by their position in the spec.
    pub(super) sources: BTreeMap<usize, Source<'a>>,
    /// What the load of each cluster asks for.
    pub(super) wishes: Vec<ClusterWish>,
    /// What the metrics that are read once ask for, and the one that asks for the most.
    pub(super) total: Option<(u32, usize)>,
    /// What was measured by metrics that are read once.
    pub(super) measurements: BTreeMap<usize, Measurement>,
    /// What is wrong with metrics that are read once, or with the spec.
    pub(super) problems: Vec<Problem>,
    /// Whether no metric is read in the clusters.
    only_total: bool,
}

impl<'a> Assessment<'a> {
    pub(super) fn of(
        metrics: &'a [Metric],
        count: Count,
        clusters: &[ClusterSnapshot],
        readings: &BTreeMap<usize, Reading>,
        tolerances: Tolerances,
        now: Timestamp,
    ) -> Self {
        let (mut sources, mut problems) = (BTreeMap::new(), Vec::new());
        for (index, metric) in metrics.iter().enumerate() {
            match Source::of(metric) {
                Ok(source) => {
                    sources.insert(index, source);
                }
                Err(message) => {
                    problems.push(Problem { metric: index, reason: unknown(metric.type_), message });
                }
            }
        }
        let is_once = |index: &usize| {
            let external = metrics.get(*index).and_then(|metric| metric.external.as_ref());
            external.is_some_and(|external| external.query.is_some())
        };
        let (once, each): (BTreeMap<_, _>, BTreeMap<_, _>) =
            sources.clone().into_iter().partition(|(index, _)| is_once(index));
        let wishes = clusters.iter().map(|cluster| wish(&each, cluster, tolerances, now)).collect();
        let only_total = each.is_empty() && !once.is_empty();
        let mut found =
            Self { sources, wishes, total: None, measurements: BTreeMap::new(), problems, only_total };
        let ready = clusters.iter().map(ready_pods).fold(0, u32::saturating_add);
        for (index, source) in &once {
            let proposal = match readings.get(index) {
                Some(Reading::Value { value, at }) if is_valid(*at, now) => {
                    by_reading(source, count.total(), ready, *value, tolerances)
                }
                Some(Reading::Failed(message)) => {
                    Err(format!("unable to get {}: {message}", source.describe()))
                }
                _ => Err(format!("{} was not read lately", source.describe())),
            };
            match proposal {
                Ok(proposal) => {
                    found.measurements.insert(*index, proposal.measurement);
                    if found.total.is_none_or(|(most, _)| proposal.desired > most) {
                        found.total = Some((proposal.desired, *index));
                    }
                }
                Err(message) => {
                    found.problems.push(Problem { metric: *index, reason: unknown(source.type_), message });
                }
            }
        }
        if found.only_total {
            // Nothing tells of the load of one cluster: all parts stay as they are.
            for wish in &mut found.wishes {
                (wish.desired, wish.need) = (wish.current, wish.current);
            }
        }
        found
    }

    /// Whether a metric is known anywhere.
    pub(super) fn is_active(&self) -> bool {
        self.total.is_some() || self.wishes.iter().any(|wish| wish.metric.is_some())
    }

    /// The number that all metrics ask for. While one that is read once is not known, it is not less than the present
    /// one.
    pub(super) fn recommend(&self, count: Count) -> u32 {
        let wishes: Vec<(u32, u32)> = self.wishes.iter().map(|wish| (wish.current, wish.desired)).collect();
        let by_clusters = if self.only_total { None } else { count.by_clusters(&wishes) };
        let by_total = self.total.map(|(total, _)| count.by_total(total));
        let number = by_clusters.max(by_total).unwrap_or(count.replicas);
        if self.problems.is_empty() { number } else { number.max(count.replicas) }
    }

    /// A metric that is known nowhere, if there is one.
    pub(super) fn unknown_everywhere(&self) -> Option<&Problem> {
        let problems = self.problems.iter().chain(self.wishes.iter().flat_map(|wish| &wish.problems));
        let known = |index: usize| {
            self.measurements.contains_key(&index)
                || self.wishes.iter().any(|wish| wish.measurements.contains_key(&index))
        };
        problems.filter(|problem| !known(problem.metric)).min_by_key(|problem| problem.metric)
    }

    /// The metric that asks for the most, and in which cluster.
    pub(super) fn leading(&self) -> Option<(&Source<'a>, Option<&str>)> {
        let most = self.wishes.iter().filter(|wish| wish.metric.is_some());
        let most = most.max_by_key(|wish| (i64::from(wish.desired) - i64::from(wish.current), wish.desired));
        let (index, cluster) = match (most, self.total) {
            (Some(wish), None) => (wish.metric?, Some(wish.cluster.as_str())),
            (Some(wish), Some((total, _))) if wish.desired > wish.current && wish.desired >= total => {
                (wish.metric?, Some(wish.cluster.as_str()))
            }
            (_, Some((_, index))) => (index, None),
            (None, None) => return None,
        };
        Some((self.sources.get(&index)?, cluster))
    }
}
