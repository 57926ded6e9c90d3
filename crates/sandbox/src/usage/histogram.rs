//! How long requests took: counts in buckets that are narrow for short times and wide for long ones.

use std::collections::BTreeMap;
use std::time::Duration;

/// Buckets in each doubling: times are told to within a sixteenth.
const PER_DOUBLING: u32 = 16;

/// How long requests took. Counts are in millionths of a request, as rates seldom give whole ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: BTreeMap<u64, u128>,
    total: u128,
    sum_micros: u128,
}

impl Histogram {
    /// Adds requests that took this long.
    pub(super) fn add(&mut self, time: Duration, millionths: u128) {
        if millionths == 0 {
            return;
        }
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        *self.counts.entry(bucket(micros)).or_default() += millionths;
        self.total += millionths;
        self.sum_micros += millionths * u128::from(micros);
    }

    /// How many requests were answered.
    #[must_use]
    pub fn count(&self) -> u64 {
        u64::try_from(self.total / 1_000_000).unwrap_or(u64::MAX)
    }

    /// How long they took on average; nothing if there were none.
    #[must_use]
    pub fn mean(&self) -> Duration {
        Duration::from_micros(
            u64::try_from(self.sum_micros.checked_div(self.total).unwrap_or(0)).unwrap_or(u64::MAX),
        )
    }

    /// The time within which this share of them was answered, in hundredths: 50, 90, 99.
    #[must_use]
    pub fn percentile(&self, percent: u8) -> Duration {
        let wanted = (self.total * u128::from(percent.min(100))).div_ceil(100);
        let mut seen = 0;
        for (micros, count) in &self.counts {
            seen += count;
            if seen >= wanted && seen > 0 {
                return Duration::from_micros(*micros);
            }
        }
        Duration::ZERO
    }
}

/// The greatest time of the bucket that a time is in.
fn bucket(micros: u64) -> u64 {
    if micros < u64::from(PER_DOUBLING) {
        return micros;
    }
    let width = 1_u64 << (micros.ilog2() - PER_DOUBLING.ilog2());
    (micros / width * width).saturating_add(width - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_told_to_within_a_sixteenth() {
        let mut histogram = Histogram::default();
        for milliseconds in 1..=100 {
            histogram.add(Duration::from_millis(milliseconds), 1_000_000);
        }
        assert_eq!(histogram.count(), 100);
        assert_eq!(histogram.mean(), Duration::from_micros(50_500));
        for (percent, expected) in [(50, 50.0), (90, 90.0), (99, 99.0), (100, 100.0)] {
            let found = histogram.percentile(percent).as_secs_f64() * 1000.0;
            assert!((expected..expected * 1.07).contains(&found), "p{percent} is {found} ms");
        }
        assert_eq!(Histogram::default().percentile(99), Duration::ZERO);
    }

    #[test]
    fn every_time_has_a_bucket_not_below_it() {
        for micros in [0, 1, 15, 16, 17, 31, 32, 33, 1000, u64::MAX - 1, u64::MAX] {
            assert!(bucket(micros) >= micros, "{micros}");
        }
    }
}
