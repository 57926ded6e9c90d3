//! A cluster in use: nodes are added and removed, and a cluster without work is removed.

use super::plan::Step;
use super::size::Sizing;
use super::{ClusterSnapshot, Ending, Event, FAILURE_GRACE, MemberState, Order, Pool, pools, shrink};
use crate::time::{after, has_passed};

impl Step<'_> {
    /// Adds nodes, removes nodes, or begins to remove the cluster.
    pub(super) fn scale(&mut self, number: u32, own: &ClusterSnapshot) {
        let name = self.name(number);
        let reachable = matches!(self.snapshot.member, MemberState::Joined { reachable: true, .. });
        let joined = self.plan.record.cluster.as_ref().is_some_and(|cluster| cluster.ready_at.is_some());
        let silent = joined && !reachable;
        self.hear(silent);
        pools::observe(self.settings, own, silent, self.now, &mut self.plan);
        if joined && reachable {
            pools::give_up(self.settings, own, self.now, &mut self.plan);
            self.note_unhelped(own);
        }
        let Sizing { add, needed, left, .. } = self.size();
        self.plan.left = left;
        pools::call_off(&name, own, needed || !add.is_empty(), &mut self.plan);
        if self.plan.orders.iter().any(|order| matches!(order, Order::Unmark { .. })) {
            return;
        }
        // What a silent member holds is not known: nothing is bought for it.
        for (machine_type, nodes) in add.into_iter().filter(|_| !silent) {
            let pool = self.plan.record.pools.entry(machine_type.clone()).or_default();
            pool.price = self.settings.machine_type(&machine_type).map_or(pool.price, |each| each.price);
            pool.desired = pool.desired.saturating_add(nodes);
            pool.short_since = Some(self.now);
            pool.failing_since = None;
            self.plan.events.push(Event::ScaledOut { machine_type, nodes });
        }
        let quiet = |pool: &Pool| pool.removing.is_empty() && !pool.lowered && pool.short_since.is_none();
        if reachable && !needed && self.plan.record.pools.values().all(quiet) {
            let going = shrink::removable(self.settings, &self.plan.record, own, self.now);
            pools::remove(going, &mut self.plan);
        }
        pools::order(&name, own, reachable, &mut self.plan);
        self.wake_for_pools();
        self.idle(needed);
    }

    /// Removes the cluster when it has been without work for long enough.
    fn idle(&mut self, needed: bool) {
        let empty = match self.snapshot.member {
            MemberState::Absent | MemberState::Joining => true,
            MemberState::Joined { workloads, .. } => workloads == 0,
            MemberState::Leaving { .. } | MemberState::Foreign { .. } | MemberState::Missing { .. } => false,
        };
        let idle = empty && !needed && self.settings.headroom.is_none();
        let since = self.plan.record.idle_since.filter(|_| idle);
        if self.plan.record.silent_since.is_some() {
            self.plan.record.idle_since = since;
            return;
        }
        let since = since.or(idle.then_some(self.now));
        self.plan.record.idle_since = since;
        if has_passed(since, self.settings.decommission_after, self.now) {
            self.end(Ending::Unused);
        } else if let Some(since) = since {
            self.wake(after(since, self.settings.decommission_after));
        }
    }

    fn wake_for_pools(&mut self) {
        let mut times = Vec::new();
        for pool in self.plan.record.pools.values() {
            times.extend(pool.short_since.map(|since| after(since, self.settings.provision_timeout)));
            times.extend(pool.failing_since.map(|since| after(since, FAILURE_GRACE)));
            times.extend(pool.retry_at);
            times.extend(pool.little_used.values().map(|since| after(*since, self.settings.scale_in_after)));
        }
        // What is due already waits for something else to change.
        times.retain(|at| *at > self.now);
        for at in times {
            self.wake(at);
        }
    }
}
