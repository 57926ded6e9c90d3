//! Removing a cluster: first its membership, which waits for workloads to leave, then its machines.

use super::own::own;
use super::step::Step;
use super::{Ending, Event, MemberState, Order};
use crate::time::{after, has_passed};
use k8s_openapi::jiff::Timestamp;
use std::time::Duration;

/// A cluster that was never seen is looked for so long before it is taken not to exist: the request may be under way.
const REQUEST_SETTLES: Duration = Duration::from_secs(60);

impl Step<'_> {
    /// Whether a cluster that was to be removed is needed after all, and can still be kept.
    pub(super) fn is_needed_again(&self) -> bool {
        let MemberState::Joined { workloads, .. } = self.snapshot.member else { return false };
        let kept = own(self.settings, &self.plan.record, self.snapshot).is_some_and(|own| !own.deleting);
        kept && (workloads > 0 || self.settings.headroom.is_some() || self.size().needed)
    }

    /// Begins to remove the cluster.
    pub(super) fn end(&mut self, why: Ending) {
        if let Some(cluster) = &mut self.plan.record.cluster {
            cluster.ending = Some((why, self.now));
            self.plan.orders.clear();
            self.plan.events.push(Event::Deprovisioning(why));
        }
    }

    /// Removes the cluster: first its membership, which waits for workloads to leave, then its machines.
    pub(super) fn remove(&mut self, number: u32, since: Timestamp) {
        self.plan.record.idle_since = None;
        self.plan.record.silent_since = None;
        let name = self.name(number);
        let created = self.plan.record.cluster.as_ref().is_some_and(|cluster| cluster.created);
        // Nothing can be moved out of a cluster that does not exist any more.
        let gone = created && !self.snapshot.clusters.contains_key(&name);
        match self.snapshot.member {
            MemberState::Joining | MemberState::Joined { .. } | MemberState::Leaving { .. } => {
                return self.unpeer(gone);
            }
            MemberState::Absent | MemberState::Foreign { .. } | MemberState::Missing { .. } => {}
        }
        if !gone && self.is_kept() {
            return;
        }
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
}
