//! What the machines that exist cost.

use super::{Record, Settings, Snapshot};
use k8s_openapi::jiff::Timestamp;

/// Counts what was spent since the record was written, and takes the machines that exist now as what is spent from now on.
pub(super) fn count(settings: &Settings, snapshot: &Snapshot, now: Timestamp, record: &mut Record) {
    let (mut rate, mut nodes) = (0u64, 0u32);
    for cluster in snapshot.clusters.values() {
        rate = rate.saturating_add(settings.cluster_price);
        for (name, pool) in &cluster.pools {
            let machines = super::snapshot::count(pool.machines.len());
            rate = rate.saturating_add(price(settings, record, name).saturating_mul(u64::from(machines)));
            nodes = nodes.saturating_add(machines);
        }
    }
    record.meter.count(rate, nodes, now);
}

/// What a machine of this type costs per hour. That of a type which is no longer in the spec stands in the record.
pub(super) fn price(settings: &Settings, record: &Record, machine_type: &str) -> u64 {
    let declared = settings.machine_type(machine_type).map(|each| each.price);
    declared.or_else(|| record.pools.get(machine_type).map(|pool| pool.price)).unwrap_or(0)
}
