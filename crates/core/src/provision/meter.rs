//! What was spent: the rate of the machines that were seen, times the seconds until the next look.
//!
//! Amounts are counted in millionths of the currency per hour times seconds, and divided by 3600 only when they are shown.
//! So however often one looks, and whoever does, nothing is rounded away.

use crate::time::seconds_between;
use k8s_openapi::jiff::Timestamp;
use portolan_api::Money;

/// So many clusters are remembered with their cost.
pub const BURSTS: usize = 10;

const SECONDS_PER_HOUR: u64 = 3600;

/// What was spent so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// What was spent until `until`, in millionths per hour times seconds.
    pub counted: u64,
    /// Until when.
    pub until: Option<Timestamp>,
    /// What is spent per hour since then, in millionths.
    pub rate: u64,
    /// The present cluster and the last ones, the newest first.
    pub bursts: Vec<BurstCost>,
}

/// What one cluster has cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BurstCost {
    /// Which cluster of the provisioner it was.
    pub number: u32,
    /// When it was asked for.
    pub started_at: Timestamp,
    /// When it was gone.
    pub ended_at: Option<Timestamp>,
    /// The largest number of nodes that was seen.
    pub most_nodes: u32,
    /// What it has cost, counted as in [`Meter`].
    pub counted: u64,
}

impl Meter {
    /// What one hour costs at present.
    #[must_use]
    pub fn per_hour(&self) -> Money {
        Money::from_micros(self.rate)
    }

    /// What was spent until the last look.
    #[must_use]
    pub fn so_far(&self) -> Money {
        shown(self.counted)
    }

    /// Counts what was spent since the last look, and from now on at this rate for so many nodes.
    pub fn count(&mut self, rate: u64, nodes: u32, now: Timestamp) {
        let seconds = self.until.map_or(0, |until| seconds_between(until, now));
        let spent = self.rate.saturating_mul(seconds);
        self.counted = self.counted.saturating_add(spent);
        // A clock that was set back is waited for: no second is counted twice.
        self.until = Some(self.until.map_or(now, |until| until.max(now)));
        self.rate = rate;
        if let Some(burst) = self.bursts.first_mut().filter(|burst| burst.ended_at.is_none()) {
            burst.counted = burst.counted.saturating_add(spent);
            burst.most_nodes = burst.most_nodes.max(nodes);
        }
    }

    pub(super) fn begin(&mut self, number: u32, now: Timestamp) {
        let burst = BurstCost { number, started_at: now, ended_at: None, most_nodes: 0, counted: 0 };
        self.bursts.insert(0, burst);
        self.bursts.truncate(BURSTS);
    }

    pub(super) fn end(&mut self, now: Timestamp) {
        if let Some(burst) = self.bursts.first_mut().filter(|burst| burst.ended_at.is_none()) {
            burst.ended_at = Some(now);
        }
    }
}

impl BurstCost {
    /// What it has cost until the last look.
    #[must_use]
    pub fn cost(&self) -> Money {
        shown(self.counted)
    }
}

fn shown(counted: u64) -> Money {
    Money::from_micros(counted / SECONDS_PER_HOUR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn an_hour_of_two_machines_and_half_an_hour_of_one() {
        let mut meter = Meter::default();
        meter.begin(1, at(0));
        meter.count(2 * 41_600, 2, at(100));
        meter.count(41_600, 1, at(3700));
        meter.count(0, 0, at(5500));
        meter.end(at(5500));
        assert_eq!(meter.so_far().to_string(), "0.104", "0.0832 + 0.0208");
        assert_eq!((meter.bursts[0].cost(), meter.bursts[0].most_nodes), (meter.so_far(), 2));
        meter.count(1_000_000, 1, at(9999));
        assert_eq!(meter.so_far().to_string(), "0.104", "nothing was there");
        meter.begin(2, at(9999));
        meter.count(1_000_000, 1, at(13_599));
        assert_eq!(meter.so_far().to_string(), "1.104");
        assert_eq!(
            meter.bursts.iter().map(|burst| burst.cost().to_string()).collect::<Vec<_>>(),
            ["1", "0.104"]
        );
    }

    #[test]
    fn a_clock_that_is_set_back_counts_nothing_twice() {
        let mut meter = Meter::default();
        meter.count(3600, 1, at(100));
        meter.count(3600, 1, at(200));
        meter.count(3600, 1, at(150));
        meter.count(3600, 1, at(250));
        assert_eq!(meter.counted, 150 * 3600);
    }

    proptest! {
        #[test]
        fn it_makes_no_difference_how_often_one_looks(
            steps in proptest::collection::vec((1i64..5000, 0u64..9_000_000), 1..20),
            looks in proptest::collection::btree_set(0i64..100_000, 0..40),
        ) {
            let (mut coarse, mut fine, mut clock) = (Meter::default(), Meter::default(), 0);
            let mut changes = Vec::new();
            for (seconds, rate) in steps {
                changes.push((clock, rate));
                clock += seconds;
            }
            for (time, rate) in &changes {
                coarse.count(*rate, 1, at(*time));
            }
            coarse.count(0, 0, at(clock));
            let mut rate = 0;
            let times = looks.into_iter().chain(changes.iter().map(|(time, _)| *time)).chain([clock]);
            let times: std::collections::BTreeSet<i64> = times.filter(|time| *time <= clock).collect();
            for time in times {
                rate = changes.iter().find(|(begins, _)| *begins == time).map_or(rate, |(_, rate)| *rate);
                fine.count(if time == clock { 0 } else { rate }, 1, at(time));
            }
            prop_assert_eq!(coarse.counted, fine.counted);
        }
    }
}
