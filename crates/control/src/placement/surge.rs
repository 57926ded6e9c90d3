//! Moves surge first: what shrinks keeps its replicas until those elsewhere are ready.

use super::observe::Seen;
use portolan_api::placement::PlacementStatus;
use portolan_core::placement::Decision;
use std::collections::BTreeMap;

/// How many replicas each cluster is to run at this moment on the way to the decision.
///
/// A cluster that is to hold fewer than it does keeps as many more as are not ready yet elsewhere, so that ready
/// replicas never dip below what was asked for. Of a silent cluster, the numbers last known count.
pub(super) fn for_now(
    decision: &Decision,
    seen: &BTreeMap<String, Seen>,
    last: &[PlacementStatus],
) -> BTreeMap<String, u32> {
    let ready = |cluster: &str| -> u32 {
        let count = match seen.get(cluster) {
            Some(seen) if seen.answers => seen.copy.as_ref().map_or(0, |copy| copy.ready),
            _ => last.iter().find(|each| each.cluster == cluster).map_or(0, |each| each.ready_replicas),
        };
        u32::try_from(count).unwrap_or(0)
    };
    let total: u32 = decision.placed.values().map(|placed| placed.replicas).sum();
    let place = |(cluster, placed): (&String, &portolan_core::placement::Placed)| {
        let copy = seen.get(cluster).and_then(|seen| seen.copy.as_ref());
        let runs = copy.map_or(0, |copy| u32::try_from(copy.replicas).unwrap_or(0));
        if runs <= placed.replicas {
            return (cluster.clone(), placed.replicas);
        }
        let elsewhere: u32 = decision
            .placed
            .iter()
            .filter(|(other, _)| *other != cluster)
            .map(|(other, placed)| ready(other).min(placed.replicas))
            .sum();
        let lacking = total.saturating_sub(elsewhere.saturating_add(placed.replicas));
        (cluster.clone(), placed.replicas.saturating_add(lacking).min(runs))
    };
    decision.placed.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::DeploymentFacts;
    use portolan_api::placement::PlacementCause;
    use portolan_core::placement::{Candidate, Placed};
    use std::sync::Arc;

    fn seen(replicas: i32, ready: i32) -> Seen {
        let copy = DeploymentFacts { replicas, ready, ..DeploymentFacts::default() };
        Seen { candidate: Candidate::default(), member: None, copy: Some(Arc::new(copy)), answers: true }
    }

    fn decided(places: &[(&str, u32)]) -> Decision {
        let place = |replicas| Placed { replicas, cause: PlacementCause::Policy, stands_in_for: Vec::new() };
        let placed = places.iter().map(|(name, replicas)| ((*name).to_owned(), place(*replicas))).collect();
        Decision { placed, ..Decision::default() }
    }

    #[test]
    fn a_cluster_shrinks_as_the_others_become_ready() {
        let decision = decided(&[("a", 2), ("b", 2)]);
        let run = |ready_in_b| {
            let fleet = BTreeMap::from([("a".to_owned(), seen(4, 4)), ("b".to_owned(), seen(2, ready_in_b))]);
            for_now(&decision, &fleet, &[])["a"]
        };
        assert_eq!((run(0), run(1), run(2)), (4, 3, 2));
    }

    #[test]
    fn what_is_lowered_everywhere_shrinks_at_once() {
        let fleet = BTreeMap::from([("a".to_owned(), seen(4, 4)), ("b".to_owned(), seen(4, 4))]);
        let now = for_now(&decided(&[("a", 1), ("b", 1)]), &fleet, &[]);
        assert_eq!((now["a"], now["b"]), (1, 1));
    }

    #[test]
    fn a_silent_cluster_counts_as_last_known() {
        let mut fleet = BTreeMap::from([("a".to_owned(), seen(4, 4)), ("b".to_owned(), seen(2, 0))]);
        fleet.get_mut("b").unwrap().answers = false;
        let last = PlacementStatus { cluster: "b".into(), ready_replicas: 2, ..PlacementStatus::default() };
        assert_eq!(for_now(&decided(&[("a", 2), ("b", 2)]), &fleet, &[last])["a"], 2);
    }
}
