//! How long things took.

use std::time::Duration;

/// The upper bounds of the classes, in seconds.
const BOUNDS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// How many things took how long.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// By class; the last has no upper bound.
    counts: [u64; BOUNDS.len() + 1],
    sum: f64,
}

impl Histogram {
    /// Counts one.
    pub fn observe(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        let class = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        if let Some(count) = self.counts.get_mut(class) {
            *count += 1;
        }
        self.sum += seconds;
    }

    /// How many were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How long all of them took, in seconds.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Counts what another one has counted.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.sum += other.sum;
    }

    /// Upper bound and count of each class.
    pub(super) fn classes(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS.iter().copied().chain([f64::INFINITY]);
        bounds.zip(self.counts.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_counted_in_one_class() {
        let mut histogram = Histogram::default();
        for milliseconds in [0, 1, 2, 60_000, 60_001] {
            histogram.observe(Duration::from_millis(milliseconds));
        }
        let classes = histogram.classes();
        let filled: Vec<_> = classes.iter().filter(|(_, count)| *count > 0).copied().collect();
        assert_eq!(filled, [(0.001, 2), (0.005, 1), (60.0, 1), (f64::INFINITY, 1)]);
        assert_eq!((histogram.count(), histogram.sum().round()), (5, 120.0));
        let mut sum = histogram.clone();
        sum.add(&histogram);
        assert_eq!(sum.count(), 10);
    }
}
