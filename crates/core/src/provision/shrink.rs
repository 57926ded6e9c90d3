//! Which nodes can go: little used for long enough, and what is on them fits on the others.

use super::bins::{Bin, fill};
use super::{ClusterSnapshot, Demand, NodeSnapshot, Record, Settings};
use crate::capacity::{CPU, MEMORY};
use crate::time::has_passed;
use k8s_openapi::jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Whether less of the node is requested than the threshold; a node without pods is little used in any case.
pub(super) fn is_little_used(node: &NodeSnapshot, threshold: u32) -> bool {
    let below = |name: &str| {
        let (all, free) = (node.facts.allocatable.get(name), node.free.get(name));
        i128::from(all - free) * 100 < i128::from(all) * i128::from(threshold)
    };
    node.pods.is_empty() || (below(CPU) && below(MEMORY))
}

/// The machines that can go, by machine type: as many as leave the least number of nodes, room for the pods that are on
/// them, and the headroom.
pub(super) fn removable(
    settings: &Settings,
    record: &Record,
    own: &ClusterSnapshot,
    now: Timestamp,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut nodes: BTreeMap<(&str, &str), &NodeSnapshot> = BTreeMap::new();
    for (pool, seen) in &own.pools {
        for (name, machine) in seen.live().filter(|(_, machine)| machine.ready_since.is_some()) {
            if let Some(node) = &machine.node {
                nodes.insert((pool, name), node);
            }
        }
    }
    let ripe = |(pool, machine): &(&str, &str)| {
        let since = record.pools.get(*pool).and_then(|pool| pool.little_used.get(*machine)).copied();
        has_passed(since, settings.scale_in_after, now)
    };
    let mut candidates: Vec<(&str, &str)> = nodes.keys().copied().filter(ripe).collect();
    let price = |pool: &str| record.pools.get(pool).map_or(0, |pool| pool.price);
    candidates
        .sort_by_key(|key| (nodes.get(key).map_or(0, |node| node.pods.len()), Reverse(price(key.0)), *key));

    let bin = |node: &NodeSnapshot| Bin { facts: node.facts.clone(), free: node.free.clone() };
    let mut stay: BTreeMap<(&str, &str), Bin> = nodes.iter().map(|(key, node)| (*key, bin(node))).collect();
    let mut going: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for key in candidates {
        if stay.len() <= settings.min_nodes as usize {
            break;
        }
        let Some(node) = nodes.get(&key) else { continue };
        if node.pods.iter().any(|pod| pod.stays.is_some()) {
            continue;
        }
        let pods: Demand = node.pods.iter().map(|pod| (pod.shape.clone(), 1)).collect();
        let others: Vec<_> = stay.keys().copied().filter(|other| *other != key).collect();
        let mut bins: Vec<Bin> = others.iter().filter_map(|other| stay.get(other)).cloned().collect();
        let moved = fill(&mut bins, &pods);
        let headroom: Demand = settings.headroom.iter().cloned().collect();
        // The headroom is only asked for: its room is not taken from the nodes that stay.
        if moved.is_empty() && fill(&mut bins.clone(), &headroom).is_empty() {
            stay = others.into_iter().zip(bins).collect();
            going.entry(key.0.to_owned()).or_default().insert(key.1.to_owned());
        }
    }
    going
}
