//! What is supposed of clusters when a plan is only looked at.

use super::observe::ClusterSnapshot;
use portolan_core::jobs::{MemberJobState, Order, Plan};
use portolan_core::placement::Refusal;
use std::collections::{BTreeMap, BTreeSet};

/// What is supposed beside what is seen.
#[derive(Debug, Default)]
pub(super) struct Supposed {
    /// The clusters that refuse the Job.
    refusing: BTreeMap<String, Refusal>,
    /// The clusters in which the Job has stopped.
    stopped: BTreeSet<String>,
}

impl Supposed {
    /// These clusters refuse the Job.
    pub(super) fn refusing(clusters: &BTreeMap<String, Refusal>) -> Self {
        Self { refusing: clusters.clone(), ..Self::default() }
    }

    /// The Jobs that a plan suspends for want of room have no pod, so that they stop at once. Answers whether that is news.
    pub(super) fn stop(&mut self, plan: &Plan) -> bool {
        let before = self.stopped.len();
        let suspended = plan.orders.iter().filter(|(_, order)| **order == Order::Suspend);
        let stuck = suspended.filter(|(cluster, _)| plan.stuck.contains_key(*cluster));
        self.stopped.extend(stuck.map(|(cluster, _)| cluster.clone()));
        self.stopped.len() > before
    }

    /// Puts what is supposed on what is seen.
    pub(super) fn put_on(&self, seen: &mut BTreeMap<String, ClusterSnapshot>) {
        for (cluster, refusal) in &self.refusing {
            if let Some(seen) = seen.get_mut(cluster) {
                seen.candidate.closed.get_or_insert_with(|| refusal.clone());
            }
        }
        for cluster in &self.stopped {
            if let Some(MemberJobState::Job(job)) = seen.get_mut(cluster).map(|seen| &mut seen.state) {
                (job.suspended, job.over) = (true, true);
            }
        }
    }
}
