//! Asking for a cluster.

use super::record::requested;
use super::size::Sizing;
use super::step::Step;
use super::{Event, MemberState, Obstacle, Pool};

impl Step<'_> {
    /// Asks for a cluster if one is needed.
    pub(super) fn begin(&mut self) {
        match self.snapshot.member {
            // It was peered in the moment when its cluster was given up.
            MemberState::Joining | MemberState::Joined { .. } | MemberState::Leaving { .. } => {
                return self.unpeer(false);
            }
            MemberState::Absent | MemberState::Foreign { .. } | MemberState::Missing { .. } => {}
        }
        if !self.snapshot.clusters.is_empty() {
            // Another cluster of this provisioner exists: it is the one on record from the next step on.
            return;
        }
        if self.settings.deleting {
            self.plan.done = true;
            return;
        }
        let name = &self.settings.cluster_name;
        self.plan.obstacle = match (&self.snapshot.rival, self.snapshot.member) {
            (Some(rival), _) => Some(Obstacle::NameShared(rival.clone())),
            (None, MemberState::Foreign { .. }) => Some(Obstacle::NameTaken(name.clone())),
            (None, _) => None,
        };
        if self.plan.obstacle.is_some() {
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
}
