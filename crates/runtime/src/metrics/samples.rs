//! What was measured at one moment.

use super::{Family, Histogram};
use std::collections::BTreeMap;

/// The series of all metrics at one moment, in order.
#[derive(Clone, Debug, Default)]
pub struct Samples(pub(super) BTreeMap<&'static str, Measured>);

/// The series of one metric, by the values of its labels.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) family: &'static Family,
    pub(super) series: BTreeMap<Vec<String>, Value>,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Count(u64),
    Seconds(f64),
    Number(f64),
    Histogram(Histogram),
}

impl Samples {
    /// Adds to the series of a counter.
    pub fn count(&mut self, family: &'static Family, labels: &[&str], count: u64) {
        match self.series(family, labels).or_insert(Value::Count(0)) {
            Value::Count(sum) => *sum += count,
            other => *other = Value::Count(count),
        }
    }

    /// Sets the series of a counter that counts seconds.
    pub fn seconds(&mut self, family: &'static Family, labels: &[&str], seconds: f64) {
        *self.series(family, labels).or_insert(Value::Seconds(0.0)) = Value::Seconds(seconds);
    }

    /// Adds to the series of a gauge.
    pub fn number(&mut self, family: &'static Family, labels: &[&str], number: f64) {
        match self.series(family, labels).or_insert(Value::Number(0.0)) {
            Value::Number(sum) => *sum += number,
            other => *other = Value::Number(number),
        }
    }

    /// Adds to the series of a histogram.
    pub fn histogram(&mut self, family: &'static Family, labels: &[&str], histogram: &Histogram) {
        match self.series(family, labels).or_insert_with(|| Value::Histogram(Histogram::default())) {
            Value::Histogram(sum) => sum.add(histogram),
            other => *other = Value::Histogram(histogram.clone()),
        }
    }

    /// The metrics that have series.
    pub fn families(&self) -> impl Iterator<Item = &'static Family> {
        self.0.values().map(|measured| measured.family)
    }

    /// How many series there are of a metric.
    #[must_use]
    pub fn len_of(&self, family: &Family) -> usize {
        self.0.get(family.name).map_or(0, |measured| measured.series.len())
    }

    /// The number of a counter or gauge with these labels, if it has such a series.
    #[must_use]
    pub fn get(&self, family: &Family, labels: &[&str]) -> Option<f64> {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        match self.0.get(family.name)?.series.get(&labels)? {
            // Exact as far as anybody counts.
            Value::Count(count) => Some(*count as f64),
            Value::Seconds(number) | Value::Number(number) => Some(*number),
            Value::Histogram(histogram) => Some(histogram.count() as f64),
        }
    }

    fn series(
        &mut self,
        family: &'static Family,
        labels: &[&str],
    ) -> std::collections::btree_map::Entry<'_, Vec<String>, Value> {
        debug_assert_eq!(labels.len(), family.labels.len(), "{}", family.name);
        let measured =
            self.0.entry(family.name).or_insert_with(|| Measured { family, series: BTreeMap::new() });
        measured.series.entry(labels.iter().map(|label| (*label).to_owned()).collect())
    }
}
