//! What an autoscaler remembers. It is kept in its status, so that it survives a restart.

use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// What an autoscaler remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// What was recommended, the latest at the end: `status.recommendations`.
    pub recommendations: Vec<Recommended>,
    /// What each cluster asked for, with a total: `status.clusters[].recommendations`.
    pub clusters: BTreeMap<String, Vec<Recommended>>,
    /// How replicas were changed, the latest at the end: `status.scaleEvents`.
    pub changes: Vec<ScaleChange>,
}

/// A number of replicas that was recommended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recommended {
    /// How many.
    pub replicas: u32,
    /// When.
    pub at: Timestamp,
}

/// A change of the replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleChange {
    /// How many more; fewer if it is negative.
    pub change: i64,
    /// When.
    pub at: Timestamp,
}

/// How old the time of a recommendation in the status may become before it is written again, though nothing else changed.
const WRITE_AFTER: SignedDuration = SignedDuration::from_mins(1);

impl Memory {
    /// What is remembered after a restart: that the present number was recommended until now. The status may be a little
    /// older than the last recommendation, and so replicas do not become fewer earlier than they would have.
    #[must_use]
    pub fn restored(mut self, replicas: u32, now: Timestamp) -> Self {
        self.recommendations.push(Recommended { replicas, at: now });
        self
    }

    /// The same, with nothing in the future: a clock that was set back would have it hold for longer than any window.
    pub(super) fn not_after(mut self, now: Timestamp) -> Self {
        let recommendations = self.recommendations.iter_mut().chain(self.clusters.values_mut().flatten());
        recommendations.for_each(|each| each.at = each.at.min(now));
        self.changes.iter_mut().for_each(|each| each.at = each.at.min(now));
        self
    }

    /// Whether the status should be written for the sake of this memory, given the one that is written there.
    #[must_use]
    pub fn differs_from(&self, written: &Self) -> bool {
        self.changes != written.changes
            || differ(&self.recommendations, &written.recommendations)
            || !self.clusters.keys().eq(written.clusters.keys())
            || self.clusters.values().zip(written.clusters.values()).any(|(new, old)| differ(new, old))
    }
}

fn differ(new: &[Recommended], old: &[Recommended]) -> bool {
    let moved = |(new, old): (&Recommended, &Recommended)| {
        new.replicas != old.replicas || new.at.duration_since(old.at).abs() >= WRITE_AFTER
    };
    new.len() != old.len() || new.iter().zip(old).any(moved)
}

/// Adds a recommendation, and drops those that no window will ask for: they are too old, or a later one outdoes them in
/// both directions.
pub(super) fn remember(
    past: &[Recommended],
    replicas: u32,
    up_window: SignedDuration,
    down_window: SignedDuration,
    now: Timestamp,
) -> Vec<Recommended> {
    let mut kept = vec![Recommended { replicas, at: now }];
    let (mut least, mut most) = (replicas, replicas);
    for each in past.iter().rev() {
        let for_up = is_within(each.at, up_window, now) && each.replicas < least;
        let for_down = is_within(each.at, down_window, now) && each.replicas > most;
        if for_up || for_down {
            kept.push(*each);
            (least, most) = (least.min(each.replicas), most.max(each.replicas));
        }
    }
    kept.reverse();
    kept
}

/// Whether that time is less than the window ago.
pub(super) fn is_within(at: Timestamp, window: SignedDuration, now: Timestamp) -> bool {
    now.duration_since(at) < window
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoscale::test_support::at;
    use proptest::prelude::*;

    fn seconds(count: i64) -> SignedDuration {
        SignedDuration::from_secs(count)
    }

    #[test]
    fn what_later_ones_outdo_is_forgotten() {
        let mut past = Vec::new();
        for (second, replicas) in [(0, 5), (10, 9), (20, 7), (30, 8), (40, 8)] {
            past = remember(&past, replicas, seconds(0), seconds(600), at(second));
        }
        let kept: Vec<u32> = past.iter().map(|each| each.replicas).collect();
        assert_eq!(kept, [9, 8]);
        assert_eq!(past[1].at, at(40), "the latest time of the same number");
        assert_eq!(remember(&past, 1, seconds(0), seconds(600), at(700)).len(), 1);
    }

    #[test]
    fn the_status_is_written_when_numbers_change_or_times_are_old() {
        let memory = |replicas, second| Memory::default().restored(replicas, at(second));
        assert!(!memory(3, 59).differs_from(&memory(3, 0)));
        assert!(memory(3, 60).differs_from(&memory(3, 0)));
        assert!(memory(4, 1).differs_from(&memory(3, 0)));
        assert!(memory(4, 1).differs_from(&Memory::default()));
    }

    proptest! {
        #[test]
        fn the_windows_see_what_they_would_see_of_all(
            all in proptest::collection::vec((1i64..60, 0u32..20), 1..40), up in 0i64..200, down in 0i64..600,
        ) {
            let (mut now, mut past, mut every) = (0, Vec::new(), Vec::new());
            for (step, replicas) in all {
                now += step;
                past = remember(&past, replicas, seconds(up), seconds(down), at(now));
                every.push(Recommended { replicas, at: at(now) });
                let seen = |list: &[Recommended], window: i64| -> Vec<u32> {
                    let within = list.iter().filter(|each| is_within(each.at, seconds(window), at(now)));
                    within.map(|each| each.replicas).collect()
                };
                let least = |list: &[Recommended]| seen(list, up).into_iter().min();
                let most = |list: &[Recommended]| seen(list, down).into_iter().max();
                prop_assert_eq!((least(&past), most(&past)), (least(&every), most(&every)));
            }
        }
    }
}
