//! A cluster in use: nodes are added and removed, and a cluster without work is removed.

use super::size::Sizing;
use super::step::Step;
use super::{ClusterSnapshot, Ending, Event, FAILURE_GRACE, MemberState, Order, Pool, pools, shrink};
use crate::time::{after, has_passed};
use k8s_openapi::jiff::Timestamp;

impl Step<'_> {
    /// Adds nodes, removes nodes, or begins to remove the cluster.
    pub(super) fn scale(&mut self, number: u32, own: &ClusterSnapshot) {
        let name = self.name(number);
        let reachable = matches!(self.snapshot.member, MemberState::Joined { reachable: true, .. });
        let joined_at = self.plan.record.cluster.as_ref().and_then(|cluster| cluster.ready_at);
        let silent = joined_at.is_some() && !reachable;
        self.hear(silent);
        pools::observe(self.settings, own, silent, self.now, &mut self.plan);
        if let Some(joined_at) = joined_at.filter(|_| reachable) {
            pools::give_up(self.settings, own, joined_at, self.now, &mut self.plan);
            self.note_unhelped(own);
            self.note_lost(own);
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
        let changes = self.plan.record.pools.values().any(Pool::is_changing);
        if reachable && !needed && !changes && !self.machines_come() {
            let going = shrink::removable(self.settings, &self.plan.record, own, self.now);
            pools::remove(going, &mut self.plan);
        }
        pools::order(&name, own, reachable, &mut self.plan);
        self.wake_for_pools(own, joined_at);
        self.idle(needed);
    }

    /// Takes note of nodes that are not ready and do not come back.
    fn note_lost(&mut self, own: &ClusterSnapshot) {
        let machines = own.pools.values().flat_map(|pool| pool.live());
        let patience = self.settings.provision_timeout;
        let lost = machines.filter(|(_, machine)| machine.is_lost(patience, self.now));
        self.plan.lost = lost.map(|(name, _)| name.clone()).collect();
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

    fn wake_for_pools(&mut self, own: &ClusterSnapshot, joined_at: Option<Timestamp>) {
        let mut times = Vec::new();
        for (_, machine) in own.pools.values().flat_map(|pool| pool.live()) {
            let since = joined_at.and_then(|at| machine.awaited_since(at)).or(machine.unready_since);
            times.extend(since.map(|since| after(since, self.settings.provision_timeout)));
        }
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
