//! How many replicas can come home, and where to.

use super::{Home, Settings, WorkloadSnapshot};
use std::collections::{BTreeMap, BTreeSet};

/// How many replicas of the workload are away.
pub(super) fn away(workload: &WorkloadSnapshot) -> u32 {
    workload.held.values().filter(|held| held.away).map(|held| held.replicas).sum()
}

/// How many more replicas each home gets: no more than it lacks, than leave the margin free, and than may leave where they
/// are.
pub(super) fn arrivals(
    settings: &Settings,
    workload: &WorkloadSnapshot,
    busy: &BTreeSet<String>,
    allowed: u32,
) -> BTreeMap<String, u32> {
    let mut open = away(workload).min(allowed);
    let mut arrivals = BTreeMap::new();
    for (name, home) in workload.homes.iter().filter(|(name, _)| !busy.contains(*name)) {
        let comes = open.min(home.lacks).min(with_margin(home, settings.margin));
        if comes > 0 {
            open -= comes;
            arrivals.insert(name.clone(), comes);
        }
    }
    arrivals
}

/// How many replicas fit if so many percent of them have room beside them.
fn with_margin(home: &Home, margin: u32) -> u32 {
    let fits = u64::from(home.fits) * 100 / (100 + u64::from(margin));
    u32::try_from(fits).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_is_kept_free() {
        let fits = |fits, margin| with_margin(&Home { fits, lacks: 99 }, margin);
        assert_eq!((fits(11, 10), fits(10, 10), fits(1, 10), fits(2, 10)), (10, 9, 0, 1));
        assert_eq!((fits(7, 0), fits(9, 200)), (7, 3));
    }
}
