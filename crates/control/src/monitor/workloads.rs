//! Workloads of the hub: how many, what was decided, and what is pending for which reason.

use super::families as family;
use crate::driver::{AnyController, Pending};
use portolan_api::Reason;
use portolan_api::placement::PendingPlacement;
use portolan_runtime::metrics::Samples;
use std::collections::BTreeMap;

/// Why something is pending that no cluster says.
const UNKNOWN: &str = "Unknown";

pub(super) fn collect(controller: &dyn AnyController, samples: &mut Samples) {
    let kind = controller.kind();
    samples.number(&family::OBJECTS, &[kind], controller.count() as f64);
    let decisions = controller.decisions().counts();
    for (result, count) in decisions.into_iter().filter(|_| decisions.iter().any(|(_, count)| *count > 0)) {
        samples.count(&family::DECISIONS, &[kind, result], count);
    }
    let (mut workloads, mut by_reason) = (0_u32, BTreeMap::<&'static str, u64>::new());
    let mut pending_of = None;
    controller.for_each_pending(&mut |pending| {
        let (of, count, clusters) = match pending {
            Pending::Replicas(count, clusters) => (&family::PENDING_REPLICAS, count, clusters),
            Pending::Completions(count, clusters) => (&family::PENDING_COMPLETIONS, count, clusters),
        };
        pending_of = Some(of);
        if let Some(count) = u64::try_from(count).ok().filter(|count| *count > 0) {
            workloads += 1;
            *by_reason.entry(reason(clusters)).or_insert(0) += count;
        }
    });
    let Some(family) = pending_of else { return };
    samples.number(&family::PENDING_WORKLOADS, &[kind], f64::from(workloads));
    for (reason, count) in by_reason {
        samples.number(family, &[reason], count as f64);
    }
}

/// The reason that most clusters give, of several the first by name: so each replica is counted once. A status can be written
/// by others, so that a word which is no reason of ours is none.
fn reason(clusters: &[PendingPlacement]) -> &'static str {
    let mut given: BTreeMap<&'static str, usize> = BTreeMap::new();
    for reason in clusters.iter().filter_map(|each| Reason::parse(&each.reason)) {
        *given.entry(reason.as_str()).or_insert(0) += 1;
    }
    let most = given.values().copied().max();
    given.into_iter().find(|(_, count)| Some(*count) == most).map_or(UNKNOWN, |(reason, _)| reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pending_is_counted_under_one_reason_of_ours() {
        let clusters = |reasons: &[&str]| -> Vec<PendingPlacement> {
            let one = |reason: &&str| PendingPlacement { reason: (*reason).to_owned(), ..Default::default() };
            reasons.iter().map(one).collect()
        };
        assert_eq!(reason(&clusters(&["NoRoom", "Unreachable", "NoRoom"])), "NoRoom");
        assert_eq!(reason(&clusters(&["Unreachable", "NoRoom"])), "NoRoom", "the first by name");
        assert_eq!(reason(&clusters(&["made-up", "made-up", "Unreachable"])), "Unreachable");
        assert_eq!(reason(&clusters(&["made-up"])), UNKNOWN);
        assert_eq!(reason(&[]), UNKNOWN);
    }
}
