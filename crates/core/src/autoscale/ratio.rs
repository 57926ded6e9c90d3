//! Load in proportion to its target, exactly.
//!
//! A ratio decides in which direction replicas change and how many there are to be. As a pair of whole numbers it is
//! compared and rounded up without error: the same load always gives the same number, however many pods carry it.

use crate::capacity::milli;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::cmp::Ordering;

/// A load and what it would be on target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ratio {
    usage: u128,
    target: u128,
}

impl Ratio {
    /// None if the target is zero: nothing can be in proportion to it.
    pub(super) fn new(usage: u128, target: u128) -> Option<Self> {
        (target > 0).then_some(Self { usage, target })
    }

    /// The ratio times so many replicas, rounded up.
    pub(super) fn of(self, replicas: u32) -> u32 {
        let exact = self.usage.saturating_mul(u128::from(replicas)).div_ceil(self.target);
        u32::try_from(exact).unwrap_or(u32::MAX)
    }

    /// Whether the load is less than, on or above its target.
    pub(super) fn direction(self) -> Ordering {
        self.usage.cmp(&self.target)
    }
}

/// By how much a load may be off its target before replicas change, in thousandths of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tolerances {
    pub(super) up: u64,
    pub(super) down: u64,
}

impl Tolerances {
    /// Every difference counts.
    pub(super) const NONE: Self = Self { up: 0, down: 0 };

    /// Whether the ratio is so near to one that replicas stay as they are.
    pub(super) fn contain(self, ratio: Ratio) -> bool {
        let usage = ratio.usage.saturating_mul(1000);
        let bound = |thousandths: u64| ratio.target.saturating_mul(u128::from(thousandths));
        bound(1000u64.saturating_sub(self.down)) <= usage && usage <= bound(self.up.saturating_add(1000))
    }
}

/// The tolerance of upstream, in thousandths.
const DEFAULT: u64 = 100;

/// A tolerance as it is written, in thousandths; 0.1 if there is none, or none that can be read.
pub(super) fn tolerance(written: Option<&Quantity>) -> u64 {
    let read = written.and_then(|written| milli(&written.0).ok());
    read.and_then(|read| u64::try_from(read).ok()).unwrap_or(DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bounds_of_the_tolerance_are_within_it() {
        let tolerances = Tolerances { up: 100, down: 50 };
        for (usage, within) in [(949, false), (950, true), (1000, true), (1100, true), (1101, false)] {
            assert_eq!(tolerances.contain(Ratio::new(usage, 1000).unwrap()), within, "{usage}");
        }
        assert!(Tolerances { up: 0, down: 5000 }.contain(Ratio::new(0, 1).unwrap()), "more than everything");
    }

    #[test]
    fn a_tolerance_is_read_as_a_fraction() {
        let quantity = |text: &str| Quantity(text.to_owned());
        for (text, expected) in [("0.1", 100), ("50m", 50), ("0", 0), ("1", 1000), ("none", 100)] {
            assert_eq!(tolerance(Some(&quantity(text))), expected, "{text}");
        }
        assert_eq!(tolerance(None), 100);
    }

    proptest! {
        #[test]
        fn as_many_replicas_as_bring_the_load_to_its_target_and_not_one_more(
            usage in 0u64..1_000_000, target in 1u64..10_000, replicas in 0u32..1000,
        ) {
            let count = Ratio::new(u128::from(usage), u128::from(target)).unwrap().of(replicas);
            let load = u64::from(replicas) * usage;
            prop_assert!(u64::from(count) * target >= load);
            prop_assert!(count == 0 || u64::from(count - 1) * target < load);
        }
    }
}
