//! Round-trip times from single measurements.

use std::collections::VecDeque;
use std::time::Duration;

/// Of so many last measurements the least counts: whatever is longer waited somewhere on its way.
const WINDOW: usize = 8;

/// How much of the difference each measurement brings in.
const GAIN: u32 = 4;

/// A round-trip time, smoothed over the last measurements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundTrip {
    last: VecDeque<Duration>,
    smoothed: Option<Duration>,
    deviation: Duration,
}

impl RoundTrip {
    /// Takes a measurement.
    pub fn measure(&mut self, time: Duration) {
        if self.last.len() == WINDOW {
            self.last.pop_front();
        }
        self.last.push_back(time);
        let least = self.last.iter().min().copied().unwrap_or(time);
        let before = self.smoothed.unwrap_or(least);
        let smoothed = toward(before, least);
        self.deviation = toward(self.deviation, time.abs_diff(smoothed));
        self.smoothed = Some(smoothed);
    }

    /// The smoothed time, once there is one.
    #[must_use]
    pub fn time(&self) -> Option<Duration> {
        self.smoothed
    }

    /// How much single measurements differ from it.
    #[must_use]
    pub fn deviation(&self) -> Duration {
        self.deviation
    }

    /// Whether a time differs so much from one that was told before that it is worth telling: by a fifth, and by a
    /// millisecond at least.
    #[must_use]
    pub fn is_news(told: Option<Duration>, time: Duration) -> bool {
        told.is_none_or(|told| {
            let difference = told.abs_diff(time);
            difference * 5 > told.max(time) && difference >= Duration::from_millis(1)
        })
    }
}

fn toward(from: Duration, to: Duration) -> Duration {
    if to >= from { from + (to - from) / GAIN } else { from - (from - to) / GAIN }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_single_slow_answer_changes_nothing() {
        let mut rtt = RoundTrip::default();
        assert_eq!(rtt.time(), None);
        for time in [20, 20, 900, 20] {
            rtt.measure(ms(time));
        }
        assert_eq!(rtt.time(), Some(ms(20)));
        assert!(rtt.deviation() > Duration::ZERO);
    }

    #[test]
    fn a_way_that_got_longer_is_believed_after_a_while() {
        let mut rtt = RoundTrip::default();
        rtt.measure(ms(10));
        for _ in 0..WINDOW - 1 {
            rtt.measure(ms(50));
        }
        assert_eq!(rtt.time(), Some(ms(10)));
        for _ in 0..20 {
            rtt.measure(ms(50));
        }
        assert!(rtt.time().unwrap() > ms(49), "{rtt:?}");
    }

    #[test]
    fn small_differences_are_no_news() {
        assert!(RoundTrip::is_news(None, ms(10)));
        assert!(!RoundTrip::is_news(Some(ms(10)), ms(12)));
        assert!(RoundTrip::is_news(Some(ms(10)), ms(13)));
        assert!(!RoundTrip::is_news(Some(Duration::from_micros(100)), Duration::from_micros(300)));
    }
}
