//! Whether a total is divided as the workload would have it.

use super::divide;
use portolan_api::placement::{Placement, PlacementPolicy};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Whether a total of replicas is divided as it would be if every location were open and had room: if not, a location
/// that opens or gets room takes its share.
#[must_use]
pub fn is_shared_out(
    placement: &Placement,
    total: u32,
    weights: &BTreeMap<String, u32>,
    reserved: &BTreeMap<&str, u32>,
) -> bool {
    let mut places: Vec<(&str, u32)> = match placement.effective_policy() {
        PlacementPolicy::ClusterAffinity => {
            let part = |name: &str| reserved.get(name).copied().unwrap_or(0);
            placement.locations.iter().map(|name| (name.as_str(), part(name))).collect()
        }
        _ => {
            let mut holders: Vec<(&str, u32)> = reserved.iter().map(|(name, part)| (*name, *part)).collect();
            holders.sort_by_key(|(_, part)| Reverse(*part));
            holders
        }
    };
    // Clusters that the policy has not found yet.
    places.resize(places.len().max(placement.effective_locations()), ("", 0));
    let shares: Vec<_> =
        places.iter().map(|(name, _)| (weights.get(*name).copied().unwrap_or(1), u32::MAX)).collect();
    divide(total, &shares).into_iter().eq(places.iter().map(|(_, part)| *part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(placement: &Placement, total: u32, reserved: &[(&str, u32)]) -> bool {
        is_shared_out(placement, total, &BTreeMap::new(), &reserved.iter().copied().collect())
    }

    #[test]
    fn a_location_without_its_share_is_waited_for() {
        let locations = ["a", "b", "c"].map(str::to_owned).to_vec();
        let placement = Placement { locations, ..Placement::default() };
        assert!(shared(&placement, 2, &[("a", 1), ("b", 1)]), "the third has no share");
        assert!(!shared(&placement, 2, &[("c", 2)]), "two are closed");
        assert!(!shared(&placement, 6, &[("a", 1), ("b", 3), ("c", 2)]), "one is full");
        let weights = BTreeMap::from([("a".to_owned(), 0), ("b".to_owned(), 1), ("c".to_owned(), 2)]);
        assert!(is_shared_out(&placement, 3, &weights, &BTreeMap::from([("b", 1), ("c", 2)])));
    }

    #[test]
    fn a_policy_waits_for_as_many_clusters_as_it_was_asked_for() {
        let policy = Some(PlacementPolicy::WorstFit);
        let placement =
            Placement { placement_policy: policy, number_of_locations: Some(2), ..Placement::default() };
        assert!(shared(&placement, 3, &[("a", 1), ("b", 2)]));
        assert!(!shared(&placement, 3, &[("a", 3)]));
        assert!(shared(&placement, 1, &[("a", 1)]), "one replica needs one cluster");
    }
}
