//! How many nodes may still be added, and for how much.

use super::cost::price;
use super::own::own;
use super::record::cluster_name;
use super::snapshot::count;
use super::{Limits, Record, Settings, Snapshot};
use std::collections::BTreeMap;

/// What may still be added. Machines that are being removed count until they are gone.
pub(super) fn limits(settings: &Settings, record: &Record, snapshot: &Snapshot) -> Limits {
    let own_name = record
        .cluster
        .as_ref()
        .map(|cluster| cluster_name(&settings.cluster_name, &settings.uid, cluster.number));
    let mut machines: BTreeMap<&str, u32> = BTreeMap::new();
    let mut clusters = 1u64;
    for (name, cluster) in &snapshot.clusters {
        let is_own = own_name.as_ref() == Some(name);
        clusters += u64::from(!is_own);
        for (pool, seen) in &cluster.pools {
            let on_record = record.pools.get(pool).filter(|_| is_own);
            let goes = |machine: &&String| {
                let going = on_record.is_some_and(|pool| pool.lowered && pool.removing.contains(*machine));
                going || seen.machines[*machine].deleting
            };
            let going = count(seen.machines.keys().filter(goes).count());
            let wanted = on_record.map_or(0, |pool| pool.desired.saturating_add(going));
            *machines.entry(pool).or_insert(0) += wanted.max(count(seen.machines.len()));
        }
    }
    let own = own(settings, record, snapshot);
    for (name, pool) in &record.pools {
        if own.is_none_or(|own| !own.pools.contains_key(name)) {
            *machines.entry(name).or_insert(0) += pool.desired;
        }
    }
    let nodes = machines.values().fold(0, |sum: u32, nodes| sum.saturating_add(*nodes));
    let cost = machines.iter().fold(settings.cluster_price.saturating_mul(clusters), |sum, (name, nodes)| {
        sum.saturating_add(price(settings, record, name).saturating_mul(u64::from(*nodes)))
    });
    Limits {
        nodes: settings.max_nodes.saturating_sub(nodes),
        cost: settings.max_cost.map(|most| most.saturating_sub(cost)),
    }
}
