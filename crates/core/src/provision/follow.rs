//! A cluster on its way: it is created, becomes usable, and joins; or it is given up.

use super::own::own;
use super::retry::{FAILURE_GRACE, MOST_RETRY};
use super::step::Step;
use super::{ClusterSnapshot, Ending, Event, Failure, MemberState, Order, pools};
use crate::time::{after, has_passed, seconds_between};
use k8s_openapi::jiff::Timestamp;

impl Step<'_> {
    /// Follows a cluster that is wanted.
    pub(super) fn follow(&mut self, number: u32) {
        let Some(own) = own(self.settings, &self.plan.record, self.snapshot) else {
            let Some(cluster) = &mut self.plan.record.cluster else { return };
            if cluster.created {
                self.end(Ending::DeletedElsewhere);
                return;
            }
            let refused = self.snapshot.refused.clone();
            let failing = refused.is_some();
            let since = cluster.failing_since.filter(|_| failing).or(failing.then_some(self.now));
            cluster.failing_since = since;
            let requested_at = cluster.requested_at;
            if !self.gives_up(requested_at, refused, since) {
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
        if own.incomplete {
            self.plan.orders.push(Order::CompleteCluster { name: self.name(number) });
        }
        self.join(number, own);
        let ends = self.plan.record.cluster.as_ref().is_some_and(|cluster| cluster.ending.is_some());
        if !ends && self.plan.obstacle.is_none() {
            self.scale(number, own);
        }
    }

    /// Peers the cluster when it is usable, and gives it up when it fails or is too slow.
    fn join(&mut self, number: u32, own: &ClusterSnapshot) {
        if self.is_kept() {
            return;
        }
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
        let refused = self.snapshot.refused.clone().filter(|_| own.incomplete);
        let failure = own.failure.clone().or(refused);
        let failing = failure.is_some();
        cluster.failing_since = cluster.failing_since.filter(|_| failing).or(failing.then_some(self.now));
        let (since, requested_at) = (cluster.failing_since, cluster.requested_at);
        let words = failure.or_else(|| own.progress.clone());
        if !self.gives_up(requested_at, words, since)
            && own.usable
            && matches!(self.snapshot.member, MemberState::Absent | MemberState::Missing { .. })
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
}
