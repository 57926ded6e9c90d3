//! The nodes of one machine type, step by step.
//!
//! Machines go in three steps, so that Cluster API never chooses another one than meant: they are marked; when the marks
//! are seen, the number of wanted nodes is lowered; when the machines are gone, it is over. Before the number is lowered,
//! everything can be called off.

use super::shrink::is_little_used;
use super::snapshot::count;
use super::{
    ClusterSnapshot, Event, FAILURE_GRACE, Failure, MachineSnapshot, Order, Plan, Pool, PoolSnapshot,
    Settings,
};
use crate::time::{after, has_passed};
use k8s_openapi::jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Takes note of how the nodes of each machine type are. Of nodes of a `silent` member nothing new is known.
pub(super) fn observe(
    settings: &Settings,
    own: &ClusterSnapshot,
    silent: bool,
    now: Timestamp,
    plan: &mut Plan,
) {
    for (name, seen) in &own.pools {
        let pool = plan.record.pools.entry(name.clone()).or_default();
        if let Some(machine_type) = settings.machine_type(name) {
            pool.price = machine_type.price;
        }
        pool.removing.retain(|machine| seen.machines.contains_key(machine));
        if pool.removing.is_empty() && seen.replicas <= pool.desired {
            pool.lowered = false;
        }
        // Somebody else asked for more nodes: these are removed when they are little used, not at once.
        if !pool.lowered && seen.replicas > pool.desired {
            pool.desired = seen.replicas;
        }
        pool.retry_at = pool.retry_at.filter(|at| *at > now);
        let short = count(seen.live().count()) < pool.desired;
        pool.short_since = pool.short_since.filter(|_| short).or(short.then_some(now));
        if silent {
            pool.little_used.retain(|machine, _| seen.machines.contains_key(machine));
            continue;
        }
        let failing = seen.live().any(|(_, machine)| !machine.registered && machine.failure.is_some());
        pool.failing_since = pool.failing_since.filter(|_| failing).or(failing.then_some(now));
        let since = |machine: &String| pool.little_used.get(machine).copied().unwrap_or(now);
        pool.little_used = seen
            .live()
            .filter(|(_, machine)| machine.ready_since.is_some())
            .filter(|(_, machine)| {
                machine.node.as_ref().is_some_and(|node| is_little_used(node, settings.threshold))
            })
            .map(|(name, _)| (name.clone(), since(name)))
            .collect();
    }
}

/// Gives up nodes that cannot be made, or not in time since their machine was begun with. Nodes that were there once are
/// left alone, also if they are not seen now.
pub(super) fn give_up(
    settings: &Settings,
    own: &ClusterSnapshot,
    joined_at: Timestamp,
    now: Timestamp,
    plan: &mut Plan,
) {
    let is_late = |since: Option<Timestamp>| has_passed(since, settings.provision_timeout, now);
    for (name, pool) in &mut plan.record.pools {
        if !pool.removing.is_empty() || pool.lowered {
            continue;
        }
        let none = PoolSnapshot::default();
        let seen = own.pools.get(name).unwrap_or(&none);
        let failed = has_passed(pool.failing_since, FAILURE_GRACE, now);
        let is_unmade = |machine: &MachineSnapshot| {
            let has_failed = failed && !machine.registered && machine.failure.is_some();
            has_failed || is_late(machine.awaited_since(joined_at))
        };
        let unmade: BTreeMap<&String, &MachineSnapshot> =
            seen.live().filter(|(_, machine)| is_unmade(machine)).collect();
        let lacking = pool.desired.saturating_sub(count(seen.live().count()));
        let missing = if is_late(pool.short_since.map(|since| since.max(joined_at))) { lacking } else { 0 };
        if unmade.is_empty() && missing == 0 {
            continue;
        }
        let own_words = unmade.values().find_map(|machine| machine.failure.clone());
        let failure = own_words.unwrap_or_else(|| timeout(settings.provision_timeout.as_secs()));
        // What was never begun with is not asked for any more; machines go by their marks, after that.
        if missing > 0 {
            pool.desired -= missing;
            pool.lowered = true;
            pool.short_since = None;
        } else {
            pool.removing = unmade.into_keys().cloned().collect();
            pool.failing_since = None;
        }
        pool.retry_at = Some(after(now, settings.retry_after));
        plan.record.last_failure = Some((failure.clone(), now));
        plan.events.push(Event::NodesFailed { machine_type: name.clone(), failure });
    }
}

/// Begins to remove machines.
pub(super) fn remove(machines: BTreeMap<String, BTreeSet<String>>, plan: &mut Plan) {
    let all: BTreeSet<String> = machines.values().flatten().cloned().collect();
    for (name, machines) in machines {
        if let Some(pool) = plan.record.pools.get_mut(&name) {
            pool.removing = machines;
        }
    }
    plan.events.extend((!all.is_empty()).then_some(Event::ScaledIn { machines: all }));
}

/// Calls off what is not wanted any more: all of it if nodes are needed, and machines that are used again.
pub(super) fn call_off(cluster: &str, own: &ClusterSnapshot, needed: bool, plan: &mut Plan) {
    let mut stay = BTreeSet::new();
    for (name, pool) in plan.record.pools.iter_mut().filter(|(_, pool)| !pool.lowered) {
        let (seen, little_used) = (own.pools.get(name), &pool.little_used);
        let has_node = |machine: &String| {
            seen.and_then(|seen| seen.machines.get(machine)).is_some_and(|machine| machine.node.is_some())
        };
        let kept = |machine: &&String| has_node(machine) && (needed || !little_used.contains_key(*machine));
        let called_off: BTreeSet<String> = pool.removing.iter().filter(kept).cloned().collect();
        pool.removing.retain(|machine| !called_off.contains(machine));
        stay.extend(called_off);
    }
    if !stay.is_empty() {
        plan.orders.push(Order::Unmark { cluster: cluster.to_owned(), machines: stay });
        plan.events.push(Event::ScaleInCalledOff);
    }
}

/// Orders what is lacking until Cluster API is as the record says. Of a member that does not answer nothing is removed.
pub(super) fn order(cluster: &str, own: &ClusterSnapshot, reachable: bool, plan: &mut Plan) {
    let (mut unmarked, mut stay) = (BTreeSet::new(), BTreeSet::new());
    let none = PoolSnapshot::default();
    for (name, pool) in &mut plan.record.pools {
        let seen = own.pools.get(name).unwrap_or(&none);
        let marked = |machine: &String| {
            seen.machines.get(machine).is_some_and(|machine| machine.marked || machine.deleting)
        };
        // A mark of which the record does not know was to be removed when the controller stopped.
        let left_over =
            seen.live().filter(|(name, machine)| machine.marked && !pool.removing.contains(*name));
        let left_over: BTreeSet<String> = left_over.map(|(name, _)| name.clone()).collect();
        let missing: Vec<String> = pool.removing.iter().filter(|machine| !marked(machine)).cloned().collect();
        if reachable && missing.is_empty() && left_over.is_empty() {
            lower(pool);
        }
        if reachable || pool.lowered {
            unmarked.extend(missing);
        }
        stay.extend(left_over);
        if seen.replicas != pool.desired {
            plan.orders.push(Order::SetReplicas {
                cluster: cluster.to_owned(),
                machine_type: name.clone(),
                replicas: pool.desired,
            });
        }
    }
    let cluster = cluster.to_owned();
    if !unmarked.is_empty() {
        plan.orders.insert(0, Order::MarkForDeletion { cluster: cluster.clone(), machines: unmarked });
    }
    if !stay.is_empty() {
        plan.orders.insert(0, Order::Unmark { cluster, machines: stay });
    }
}

/// Lowers the number of wanted nodes by those that go.
fn lower(pool: &mut Pool) {
    if !pool.lowered && !pool.removing.is_empty() {
        pool.desired = pool.desired.saturating_sub(count(pool.removing.len()));
        pool.lowered = true;
    }
}

pub(super) fn timeout(seconds: u64) -> Failure {
    Failure {
        reason: "Timeout".to_owned(),
        message: format!("it was not ready after {seconds} s, which spec.provisionTimeout allows"),
    }
}
