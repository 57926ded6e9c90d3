//! The plan itself: one provisioner's next step.

use super::record::cluster_name;
use super::size::{Sizing, own, size};
use super::{
    ClusterRecord, ClusterSnapshot, Ending, Event, Failure, MemberState, Order, Plan, Pool, Record, Settings,
    Snapshot, cost, pools, shrink,
};
use crate::time::{after, has_passed, seconds_between, whole_seconds};
use k8s_openapi::jiff::Timestamp;
use portolan_api::cloudprovisioner::CloudPhase;
use std::time::Duration;

/// A failure that Cluster API reports must last so long: many pass by themselves.
pub const FAILURE_GRACE: Duration = Duration::from_secs(120);

/// A cluster that was never seen is looked for so long before it is taken not to exist: the request may be under way.
const REQUEST_SETTLES: Duration = Duration::from_secs(60);

/// After a failure nothing is tried for at most so many times `retryAfter`.
const MOST_RETRY: u32 = 8;

/// Plans the next step of a provisioner.
#[must_use]
pub fn plan(settings: &Settings, record: &Record, snapshot: &Snapshot, now: Timestamp) -> Plan {
    let now = whole_seconds(now);
    let plan = Plan { record: record.clone(), ..Plan::default() };
    let mut step = Step { settings, snapshot, now, plan };
    cost::count(settings, snapshot, now, &mut step.plan.record);
    step.adopt();
    if !settings.paused {
        step.go();
    }
    step.finish()
}

struct Step<'a> {
    settings: &'a Settings,
    snapshot: &'a Snapshot,
    now: Timestamp,
    plan: Plan,
}

impl Step<'_> {
    /// A cluster of this provisioner that is not on record is its cluster: the status was lost.
    fn adopt(&mut self) {
        let clusters = &self.snapshot.clusters;
        let record = &mut self.plan.record;
        let highest = clusters.values().map(|cluster| cluster.number).max().unwrap_or(0);
        record.clusters = record.clusters.max(highest);
        if record.cluster.is_none()
            && let Some(found) = clusters.values().min_by_key(|cluster| (cluster.deleting, cluster.number))
        {
            record.cluster = Some(requested(found.number, self.now));
            record.pools.clear();
            record.meter.begin(found.number, self.now);
        }
        let own = record.cluster.as_ref().map(|cluster| cluster.number);
        let strays = clusters.iter().filter(|(_, cluster)| Some(cluster.number) != own);
        self.plan.strays = strays.map(|(name, _)| name.clone()).collect();
    }

    fn go(&mut self) {
        let Some(cluster) = self.plan.record.cluster.clone() else { return self.begin() };
        if self.settings.deleting && cluster.ending.is_none() {
            self.end(Ending::ProvisionerDeleted);
        }
        let ending = |step: &Self| step.plan.record.cluster.as_ref().and_then(|cluster| cluster.ending);
        if let Some((Ending::Unused, _)) = ending(self)
            && self.is_needed_again()
        {
            if let Some(cluster) = &mut self.plan.record.cluster {
                cluster.ending = None;
            }
            self.plan.events.push(Event::DeprovisioningCalledOff);
        }
        if ending(self).is_none() {
            self.follow(cluster.number);
        }
        if let Some((_, since)) = ending(self) {
            self.remove(cluster.number, since);
        }
    }

    /// Asks for a cluster if one is needed.
    fn begin(&mut self) {
        if self.snapshot.member != MemberState::Absent {
            // It was peered in the moment when its cluster was given up.
            self.unpeer();
            return;
        }
        if !self.snapshot.clusters.is_empty() {
            // Another cluster of this provisioner exists: it is the one on record from the next step on.
            return;
        }
        if self.settings.deleting {
            self.plan.done = true;
            return;
        }
        if let Some(at) = self.plan.record.retry_at.filter(|at| *at > self.now) {
            self.wake(at);
            return;
        }
        let Sizing { add, cost, needed, left } = self.size();
        self.plan.left = left;
        if add.is_empty() || !(needed || self.settings.headroom.is_some()) {
            return;
        }
        let record = &mut self.plan.record;
        record.clusters += 1;
        let number = record.clusters;
        record.cluster = Some(requested(number, self.now));
        record.idle_since = None;
        let pool = |(name, desired): (String, u32)| {
            let price = self.settings.machine_type(&name).map_or(0, |each| each.price);
            (name, Pool { desired, price, ..Pool::default() })
        };
        record.pools = add.into_iter().map(pool).collect();
        record.meter.begin(number, self.now);
        let nodes = record.pools.values().map(|pool| pool.desired).sum();
        let cost = cost.saturating_add(self.settings.cluster_price);
        self.plan.events.push(Event::ClusterRequested { name: self.name(number), nodes, cost });
        self.create(number);
    }

    /// Follows a cluster that is wanted.
    fn follow(&mut self, number: u32) {
        let Some(own) = own(self.settings, &self.plan.record, self.snapshot) else {
            let Some(cluster) = &self.plan.record.cluster else { return };
            if cluster.created {
                self.end(Ending::DeletedElsewhere);
            } else if !self.gives_up(cluster.requested_at, self.snapshot.refused.clone(), None) {
                self.create(number);
            }
            return;
        };
        if own.deleting {
            return self.end(Ending::DeletedElsewhere);
        }
        if let Some(cluster) = &mut self.plan.record.cluster {
            cluster.created = true;
        }
        self.join(number, own);
        if self.plan.record.cluster.as_ref().is_some_and(|cluster| cluster.ending.is_none()) {
            self.scale(number, own);
        }
    }

    /// Peers the cluster when it is usable, and gives it up when it fails or is too slow.
    fn join(&mut self, number: u32, own: &ClusterSnapshot) {
        let Some(cluster) = &mut self.plan.record.cluster else { return };
        let joined = matches!(self.snapshot.member, MemberState::Joined { .. });
        if cluster.ready_at.is_some() {
            if !joined {
                self.end(Ending::Unpeered);
            }
            return;
        }
        if joined {
            cluster.ready_at = Some(self.now);
            cluster.failing_since = None;
            let seconds = seconds_between(cluster.requested_at, self.now);
            self.plan.record.failures = 0;
            self.plan.record.retry_at = None;
            self.plan.events.push(Event::ClusterJoined { seconds });
            return;
        }
        if matches!(self.snapshot.member, MemberState::Leaving { .. }) {
            return self.end(Ending::Unpeered);
        }
        let failing = own.failure.is_some();
        cluster.failing_since = cluster.failing_since.filter(|_| failing).or(failing.then_some(self.now));
        let (since, requested_at) = (cluster.failing_since, cluster.requested_at);
        let words = own.failure.clone().or_else(|| own.progress.clone());
        if !self.gives_up(requested_at, words, since)
            && own.usable
            && self.snapshot.member == MemberState::Absent
        {
            let order =
                Order::Peer { cluster: self.name(number), member: self.settings.cluster_name.clone() };
            self.plan.orders.push(order);
        }
    }

    /// Gives the cluster up if it has failed for long enough or takes too long; answers whether.
    fn gives_up(
        &mut self,
        requested_at: Timestamp,
        words: Option<Failure>,
        failing: Option<Timestamp>,
    ) -> bool {
        let late = has_passed(Some(requested_at), self.settings.provision_timeout, self.now);
        if !late && !has_passed(failing, FAILURE_GRACE, self.now) {
            self.wake(after(requested_at, self.settings.provision_timeout));
            if let Some(since) = failing {
                self.wake(after(since, FAILURE_GRACE));
            }
            return false;
        }
        let failure = words.unwrap_or_else(|| pools::timeout(self.settings.provision_timeout.as_secs()));
        let record = &mut self.plan.record;
        let times = 1u32.checked_shl(record.failures).unwrap_or(MOST_RETRY).min(MOST_RETRY);
        record.failures = record.failures.saturating_add(1);
        record.retry_at = Some(after(self.now, self.settings.retry_after.saturating_mul(times)));
        record.last_failure = Some((failure.clone(), self.now));
        self.plan.events.push(Event::ClusterFailed(failure));
        self.end(Ending::Failed);
        true
    }

    /// Adds nodes, removes nodes, or begins to remove the cluster.
    fn scale(&mut self, number: u32, own: &ClusterSnapshot) {
        let name = self.name(number);
        let reachable = matches!(self.snapshot.member, MemberState::Joined { reachable: true, .. });
        let joined = self.plan.record.cluster.as_ref().is_some_and(|cluster| cluster.ready_at.is_some());
        pools::observe(self.settings, own, reachable, self.now, &mut self.plan);
        if joined && reachable {
            pools::give_up(self.settings, own, self.now, &mut self.plan);
        }
        let Sizing { add, needed, left, .. } = self.size();
        self.plan.left = left;
        pools::call_off(&name, own, needed || !add.is_empty(), &mut self.plan);
        if self.plan.orders.iter().any(|order| matches!(order, Order::Unmark { .. })) {
            return;
        }
        for (machine_type, nodes) in add {
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
            MemberState::Joined { reachable, workloads } => reachable && workloads == 0,
            MemberState::Leaving { .. } => false,
        };
        let idle = empty && !needed && self.settings.headroom.is_none();
        let since = self.plan.record.idle_since.filter(|_| idle).or(idle.then_some(self.now));
        self.plan.record.idle_since = since;
        if has_passed(since, self.settings.decommission_after, self.now) {
            self.end(Ending::Unused);
        } else if let Some(since) = since {
            self.wake(after(since, self.settings.decommission_after));
        }
    }

    /// Whether a cluster that was to be removed is needed after all, and can still be kept.
    fn is_needed_again(&self) -> bool {
        let MemberState::Joined { workloads, .. } = self.snapshot.member else { return false };
        let kept = own(self.settings, &self.plan.record, self.snapshot).is_some_and(|own| !own.deleting);
        kept && (workloads > 0 || self.settings.headroom.is_some() || self.size().needed)
    }

    /// Begins to remove the cluster.
    fn end(&mut self, why: Ending) {
        if let Some(cluster) = &mut self.plan.record.cluster {
            cluster.ending = Some((why, self.now));
            self.plan.orders.clear();
            self.plan.events.push(Event::Deprovisioning(why));
        }
    }

    /// Removes the cluster: first its membership, which waits for workloads to leave, then its machines.
    fn remove(&mut self, number: u32, since: Timestamp) {
        self.plan.record.idle_since = None;
        match self.snapshot.member {
            MemberState::Joining | MemberState::Joined { .. } => return self.unpeer(),
            MemberState::Leaving { .. } => return,
            MemberState::Absent => {}
        }
        let name = self.name(number);
        let created = self.plan.record.cluster.as_ref().is_some_and(|cluster| cluster.created);
        match self.snapshot.clusters.get(&name) {
            Some(cluster) if cluster.deleting => {}
            Some(_) => self.plan.orders.push(Order::DeleteCluster { name }),
            None if !created && !has_passed(Some(since), REQUEST_SETTLES, self.now) => {
                self.plan.orders.push(Order::DeleteCluster { name });
                self.wake(after(since, REQUEST_SETTLES));
            }
            None => {
                let record = &mut self.plan.record;
                record.cluster = None;
                record.pools.clear();
                record.meter.end(self.now);
                let cost = record.meter.bursts.first().map(super::BurstCost::cost).unwrap_or_default();
                self.plan.events.push(Event::ClusterDeleted { cost });
                self.begin();
            }
        }
    }

    fn create(&mut self, number: u32) {
        let pools = self.plan.record.pools.iter().map(|(name, pool)| (name.clone(), pool.desired)).collect();
        self.plan.orders.push(Order::CreateCluster { name: self.name(number), number, pools });
    }

    fn unpeer(&mut self) {
        if !matches!(self.snapshot.member, MemberState::Leaving { .. }) {
            self.plan.orders.push(Order::Unpeer { member: self.settings.cluster_name.clone() });
        }
    }

    fn size(&self) -> Sizing {
        size(self.settings, &self.plan.record, self.snapshot, self.now)
    }

    fn name(&self, number: u32) -> String {
        cluster_name(&self.settings.cluster_name, &self.settings.uid, number)
    }

    fn wake(&mut self, at: Timestamp) {
        self.plan.next = Some(self.plan.next.map_or(at, |next| next.min(at)));
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

    fn finish(mut self) -> Plan {
        let record = &self.plan.record;
        self.plan.phase = match &record.cluster {
            None if record.retry_at.is_some_and(|at| at > self.now) => CloudPhase::Failed,
            None => CloudPhase::Idle,
            Some(cluster) if cluster.ending.is_some() => CloudPhase::Deprovisioning,
            Some(cluster) if cluster.ready_at.is_none() => CloudPhase::Provisioning,
            Some(_) if record.pools.values().any(Pool::is_changing) => CloudPhase::Scaling,
            Some(_) => CloudPhase::Ready,
        };
        self.plan
    }
}

impl Pool {
    fn is_changing(&self) -> bool {
        self.short_since.is_some() || self.lowered || !self.removing.is_empty()
    }
}

fn requested(number: u32, now: Timestamp) -> ClusterRecord {
    ClusterRecord {
        number,
        requested_at: now,
        created: false,
        ready_at: None,
        failing_since: None,
        ending: None,
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
