//! The bounds of the number of replicas.

use super::behavior::Rules;
use super::memory::Memory;
use jiff::Timestamp;
use portolan_api::Reason;

/// How many replicas there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) least: u32,
    pub(super) most: u32,
}

impl Bounds {
    /// Keeps a number within the bounds and the rate of change, and tells which of them holds it back.
    pub(super) fn apply(
        self,
        current: u32,
        desired: u32,
        rules: &Rules,
        memory: &Memory,
        now: Timestamp,
    ) -> (u32, Reason) {
        if desired > current {
            let rate = rules.at_most(current, memory, now);
            let by_rate = (rate, Reason::ScaleUpLimit);
            let (limit, reason) =
                if self.most > rate { by_rate } else { (self.most, Reason::TooManyReplicas) };
            if desired > limit {
                return (limit, reason);
            }
        }
        if desired < current {
            let rate = rules.at_least(current, memory, now);
            let by_rate = (rate, Reason::ScaleDownLimit);
            let (limit, reason) =
                if self.least < rate { by_rate } else { (self.least, Reason::TooFewReplicas) };
            if desired < limit {
                return (limit, reason);
            }
        }
        (desired, Reason::DesiredWithinRange)
    }
}
