//! What is particular to a total that is divided over the clusters.

use super::behavior::Rules;
use super::cluster::ClusterWish;
use super::division::{Share, divide_by_load};
use super::memory::{Memory, Recommended, remember};
use super::stabilize::stabilize;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// In a total, the last replica of a cluster stays: without it nothing would tell that load has come back. Only a
/// workload that may have no replicas at all loses them, when no cluster has load.
pub(super) fn keep_last_replicas(wishes: &mut [ClusterWish], least: u32) {
    if least > 0 || wishes.iter().any(|wish| wish.desired > 0) {
        for wish in wishes.iter_mut().filter(|wish| wish.current > 0) {
            (wish.desired, wish.need) = (wish.desired.max(1), wish.need.max(1));
        }
    }
}

/// In a total each cluster has a window for fewer replicas of its own. Otherwise load that moves from one cluster to
/// another, and back, would take its replicas along at once.
pub(super) fn stabilize_clusters(
    wishes: &mut [ClusterWish],
    rules: &Rules,
    memory: &mut Memory,
    now: Timestamp,
) {
    let mut clusters = BTreeMap::new();
    for wish in wishes {
        let mut past = memory.clusters.remove(&wish.cluster).unwrap_or_default();
        if past.is_empty() {
            if wish.current == 0 {
                continue;
            }
            past.push(Recommended { replicas: wish.current, at: now });
        }
        let (up, down) = (SignedDuration::ZERO, rules.down_window());
        let stabilized = stabilize(wish.current, wish.desired, &past, up, down, now);
        clusters.insert(wish.cluster.clone(), remember(&past, wish.desired, up, down, now));
        if stabilized > wish.desired {
            (wish.desired, wish.need) = (stabilized, wish.need.max(stabilized));
        }
    }
    memory.clusters = clusters;
}

/// The parts of a total. A location that never had a replica is not named, so that placement begins with one there.
pub(super) fn division(total: u32, wishes: &[ClusterWish], memory: &Memory) -> BTreeMap<String, u32> {
    if total == 0 {
        return BTreeMap::new();
    }
    let shares = wishes.iter().map(|wish| {
        let share = Share { current: wish.current, desired: wish.desired, need: wish.need };
        (wish.cluster.clone(), share)
    });
    let shares: BTreeMap<_, _> =
        shares.filter(|(name, share)| memory.clusters.contains_key(name) || share.desired > 0).collect();
    divide_by_load(total, &shares)
}
