//! How many nodes are needed beside those that are there or on their way.

use super::bins::{Bin, fill};
use super::limits::limits;
use super::own::own;
use super::shrink::is_little_used;
use super::snapshot::count;
use super::unhelped::{HELPS, split};
use super::{Demand, Left, Limits, MachineType, Record, Settings, Snapshot, choose};
use crate::time::after;
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// A node that has just become ready counts as on its way for so long: replicas that wait for it have not found it yet.
const SETTLES: Duration = Duration::from_secs(60);

/// What is to be added.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sizing {
    /// How many nodes of each machine type.
    pub(super) add: BTreeMap<String, u32>,
    /// What they cost per hour.
    pub(super) cost: u64,
    /// Whether pods wait that have, or will have, a node here.
    pub(super) needed: bool,
    /// The pods that get none.
    pub(super) left: Vec<Left>,
}

/// The nodes that are not ready yet, or only just.
#[derive(Clone, Debug, Default)]
pub(super) struct Coming {
    /// With what is free on each.
    pub(super) bins: Vec<Bin>,
    /// How many of each machine type are empty.
    fresh: BTreeMap<String, u32>,
}

/// How many nodes are to be added for the demand, for the headroom, and for the least number of nodes.
pub(super) fn size(settings: &Settings, record: &Record, snapshot: &Snapshot, now: Timestamp) -> Sizing {
    let mut coming = coming(settings, record, snapshot, now);
    let fresh = std::mem::take(&mut coming.fresh);
    let (demand, unhelped) = split(&record.unhelped(now), &snapshot.demand);
    let mut rest = fill(&mut coming.bins, &demand);
    let limits = limits(settings, record, snapshot);
    let retried =
        |name: &str| record.pools.get(name).and_then(|pool| pool.retry_at).is_none_or(|at| at <= now);
    let types: Vec<MachineType> =
        settings.machine_types.iter().filter(|each| retried(&each.name)).cloned().collect();
    if !rest.is_empty() && is_covered(settings, &demand, &fresh) {
        rest = Demand::default();
    }
    let spare = spare(settings, record, snapshot, now, &mut coming.bins);
    let mut needs = rest.clone();
    needs.extend(&spare);
    let chosen = choose(&types, &needs, limits);
    let lacks = |left: &Left| left.pods.saturating_sub(of(&spare, left));
    let left: Vec<Left> = chosen
        .left
        .into_iter()
        .map(|left| Left { pods: lacks(&left), ..left })
        .filter(|left| left.pods > 0)
        .chain(unhelped)
        .collect();
    let unplaced: u32 = left.iter().map(|left| left.pods).sum();
    let needed = snapshot.demand.pods() > unplaced;
    let mut sizing = Sizing { add: chosen.count, cost: chosen.cost, needed, left };
    if record.cluster.is_some() || !sizing.add.is_empty() {
        at_least(settings, record, &types, limits, &mut sizing);
    }
    sizing
}

/// How many pods of the headroom are of the shape that is left: these are given up first.
fn of(spare: &Demand, left: &Left) -> u32 {
    spare.iter().find(|(shape, _)| **shape == left.shape).map_or(0, |(_, pods)| pods)
}

/// Whether the empty nodes on their way are those that would be chosen for all that waits. The search packs tighter than
/// pods are put on nodes here; what it has chosen must not be asked for again.
fn is_covered(settings: &Settings, demand: &Demand, fresh: &BTreeMap<String, u32>) -> bool {
    if fresh.is_empty() {
        return false;
    }
    let limits = Limits { nodes: settings.max_nodes, cost: settings.max_cost };
    let ideal = choose(&settings.machine_types, demand, limits);
    ideal.left.is_empty()
        && ideal.count.iter().all(|(name, nodes)| fresh.get(name).is_some_and(|has| has >= nodes))
}

/// Adds nodes of the cheapest type until there are as many as there have to be.
fn at_least(
    settings: &Settings,
    record: &Record,
    types: &[MachineType],
    limits: Limits,
    sizing: &mut Sizing,
) {
    let desired: u32 = record.pools.values().map(|pool| pool.desired).sum();
    let added: u32 = sizing.add.values().sum();
    let lacking = settings.min_nodes.saturating_sub(desired.saturating_add(added));
    let size = |each: &&MachineType| {
        let allocatable = &each.node.allocatable;
        (each.price, allocatable.get(crate::capacity::CPU), allocatable.get(crate::capacity::MEMORY))
    };
    let Some(cheapest) = types.iter().min_by_key(size) else { return };
    let affordable = match limits.cost {
        Some(limit) if cheapest.price > 0 => {
            u32::try_from(limit.saturating_sub(sizing.cost) / cheapest.price).unwrap_or(u32::MAX)
        }
        _ => u32::MAX,
    };
    let more = lacking.min(affordable).min(limits.nodes.saturating_sub(added));
    if more > 0 {
        *sizing.add.entry(cheapest.name.clone()).or_insert(0) += more;
        sizing.cost = sizing.cost.saturating_add(cheapest.price.saturating_mul(u64::from(more)));
    }
}

/// The room on nodes that are on their way.
pub(super) fn coming(settings: &Settings, record: &Record, snapshot: &Snapshot, now: Timestamp) -> Coming {
    let mut coming = Coming::default();
    let own = own(settings, record, snapshot);
    for (name, pool) in &record.pools {
        let seen = own.and_then(|own| own.pools.get(name));
        let live: Vec<_> = seen
            .iter()
            .flat_map(|seen| seen.live())
            .filter(|(machine, _)| !pool.removing.contains(*machine))
            .map(|(_, machine)| machine)
            .collect();
        let patience = settings.provision_timeout;
        let mut empty = live.iter().filter(|machine| machine.is_coming(patience, now)).count();
        let kept = if pool.lowered { 0 } else { pool.removing.len() };
        empty += (pool.desired as usize).saturating_sub(live.len() + kept);
        if let Some(machine_type) = settings.machine_type(name).filter(|_| empty > 0) {
            coming.bins.extend(std::iter::repeat_n(Bin::new(machine_type), empty));
            coming.fresh.insert(name.clone(), count(empty));
        }
        for machine in live {
            let (Some(node), Some(since)) = (&machine.node, machine.ready_since) else { continue };
            match settings.machine_type(name) {
                // Until pods had the time to find it, it counts as what it was bought for.
                Some(machine_type)
                    if now < after(since, HELPS) && is_little_used(node, settings.threshold) =>
                {
                    coming.bins.push(node.declared(Bin::new(machine_type)));
                }
                Some(_) | None if now < after(since, SETTLES) => {
                    coming.bins.push(Bin { facts: node.facts.clone(), free: node.free.clone() });
                }
                Some(_) | None => {}
            }
        }
    }
    coming
}

/// The pods of the headroom that have no room on the nodes that are there or on their way.
fn spare(
    settings: &Settings,
    record: &Record,
    snapshot: &Snapshot,
    now: Timestamp,
    coming: &mut Vec<Bin>,
) -> Demand {
    let Some((shape, pods)) = &settings.headroom else { return Demand::default() };
    let pools = own(settings, record, snapshot).into_iter().flat_map(|own| &own.pools);
    let stays = |name: &str, machine: &str| {
        record.pools.get(name).is_none_or(|pool| !pool.removing.contains(machine))
    };
    for (name, pool) in pools {
        for (_, seen) in pool.live().filter(|(machine, _)| stays(name, machine)) {
            let Some(node) = &seen.node else { continue };
            let young = if is_little_used(node, settings.threshold) { HELPS } else { SETTLES };
            if seen.ready_since.is_some_and(|since| now >= after(since, young)) {
                coming.push(Bin { facts: node.facts.clone(), free: node.free.clone() });
            }
        }
    }
    fill(coming, &[(shape.clone(), *pods)].into_iter().collect())
}
