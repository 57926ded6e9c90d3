//! The plan itself: one provisioner's next step.

use super::own::own;
use super::record::{cluster_name, requested};
use super::size::{Sizing, size};
use super::step::Step;
use super::{
    ClusterRecord, Ending, Event, MemberState, Obstacle, Order, Plan, Pool, Record, Settings, Snapshot, cost,
};
use crate::time::whole_seconds;
use k8s_openapi::jiff::Timestamp;
use portolan_api::cloudprovisioner::CloudPhase;

/// Plans the next step of a provisioner.
#[must_use]
pub fn plan(settings: &Settings, record: &Record, snapshot: &Snapshot, now: Timestamp) -> Plan {
    let now = whole_seconds(now);
    let plan = Plan { record: record.clone(), ..Plan::default() };
    let mut step = Step { settings, snapshot, now, plan };
    cost::count(settings, snapshot, now, &mut step.plan.record);
    step.adopt();
    match &snapshot.outdated {
        _ if settings.paused => step.pause(),
        Some(why) => step.wait(why),
        None => step.go(),
    }
    step.finish()
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
            // Whether it had joined under a ForeignCluster that is not its own now is not known: it is not given up for that.
            let unclear =
                matches!(self.snapshot.member, MemberState::Foreign { .. } | MemberState::Missing { .. });
            let cluster = requested(found.number, self.now);
            record.cluster = Some(ClusterRecord { ready_at: unclear.then_some(self.now), ..cluster });
            record.pools.clear();
            record.meter.begin(found.number, self.now);
        }
        let own = record.cluster.as_ref().map(|cluster| cluster.number);
        let strays = clusters.iter().filter(|(_, cluster)| Some(cluster.number) != own);
        self.plan.strays = strays.map(|(name, _)| name.clone()).collect();
    }

    fn go(&mut self) {
        let Some(cluster) = self.plan.record.cluster.clone() else { return self.begin() };
        if self.is_untouchable() {
            return;
        }
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
        if ending(self).is_none() && !self.keep_peered() {
            self.follow(cluster.number);
        }
        if let Some((_, since)) = ending(self) {
            self.remove(cluster.number, since);
        }
    }

    pub(super) fn create(&mut self, number: u32) {
        let pools = self.plan.record.pools.iter().map(|(name, pool)| (name.clone(), pool.desired)).collect();
        self.plan.orders.push(Order::CreateCluster { name: self.name(number), number, pools });
    }

    /// Has the ForeignCluster deleted, whatever is on record there if its machines are gone.
    pub(super) fn unpeer(&mut self, abandon: bool) {
        let waits = match self.snapshot.member {
            MemberState::Leaving { workloads } => workloads == 0 || !abandon,
            MemberState::Absent
            | MemberState::Joining
            | MemberState::Joined { .. }
            | MemberState::Foreign { .. }
            | MemberState::Missing { .. } => false,
        };
        if !waits {
            self.plan.orders.push(Order::Unpeer { member: self.settings.cluster_name.clone(), abandon });
        }
    }

    /// Makes and removes nothing. A provisioner that is deleted goes if there is nothing to remove.
    fn pause(&mut self) {
        if !self.settings.deleting {
            return;
        }
        let peered = match self.snapshot.member {
            MemberState::Joining | MemberState::Joined { .. } | MemberState::Leaving { .. } => true,
            MemberState::Absent | MemberState::Foreign { .. } | MemberState::Missing { .. } => false,
        };
        let made = self.plan.record.cluster.is_some() || !self.snapshot.clusters.is_empty() || peered;
        self.plan.done = !made && self.snapshot.outdated.is_none();
        self.plan.obstacle = made.then_some(Obstacle::Paused);
    }

    /// Takes back what a removal that was called off has done to the ForeignCluster, if it has; answers whether. That is seen,
    /// not remembered: the controller may have stopped in between. Until then pods wait that have room, and no node is bought.
    fn keep_peered(&mut self) -> bool {
        let stays = matches!(self.snapshot.member, MemberState::Joining | MemberState::Joined { .. });
        let taken_back = stays && self.snapshot.leaving;
        if taken_back {
            self.plan.orders.push(Order::KeepPeered { member: self.settings.cluster_name.clone() });
        }
        taken_back
    }

    pub(super) fn size(&self) -> Sizing {
        size(self.settings, &self.plan.record, self.snapshot, self.now)
    }

    /// Whether machines of the cluster will be nodes soon.
    pub(super) fn machines_come(&self) -> bool {
        let pools =
            own(self.settings, &self.plan.record, self.snapshot).into_iter().flat_map(|own| &own.pools);
        let mut machines = pools.flat_map(|(_, pool)| pool.live());
        machines.any(|(_, machine)| machine.is_coming(self.settings.provision_timeout, self.now))
    }

    pub(super) fn name(&self, number: u32) -> String {
        cluster_name(&self.settings.cluster_name, &self.settings.uid, number)
    }

    pub(super) fn wake(&mut self, at: Timestamp) {
        self.plan.next = Some(self.plan.next.map_or(at, |next| next.min(at)));
    }

    fn finish(mut self) -> Plan {
        let record = &self.plan.record;
        self.plan.phase = match &record.cluster {
            None if record.retry_at.is_some_and(|at| at > self.now) => CloudPhase::Failed,
            None => CloudPhase::Idle,
            Some(cluster) if cluster.ending.is_some() => CloudPhase::Deprovisioning,
            Some(cluster) if cluster.ready_at.is_none() => CloudPhase::Provisioning,
            Some(_) if record.pools.values().any(Pool::is_changing) => CloudPhase::Scaling,
            // Of the nodes of a silent member nothing is known.
            Some(_) if record.silent_since.is_none() && self.machines_come() => CloudPhase::Scaling,
            Some(_) => CloudPhase::Ready,
        };
        self.plan
    }
}

impl Pool {
    pub(super) fn is_changing(&self) -> bool {
        self.short_since.is_some() || self.lowered || !self.removing.is_empty()
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
