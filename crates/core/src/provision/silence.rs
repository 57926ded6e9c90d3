//! A member that has joined and does not answer: nothing is known of its nodes, so nothing is added or removed, and no
//! delay goes on. A new leader knows as little until it has listed the nodes, and a hub whose lists are of the past.

use super::Obstacle;
use super::step::Step;
use crate::time::{after, seconds_between};
use std::time::Duration;

impl Step<'_> {
    /// Waits until what is seen is not of the past any more.
    pub(super) fn wait(&mut self, why: &str) {
        self.plan.obstacle = Some(Obstacle::Outdated(why.to_owned()));
        if self.plan.record.cluster.as_ref().is_some_and(|cluster| cluster.ending.is_none()) {
            self.hear(true);
        }
    }

    /// Takes note of whether the member is silent. When it answers again, the time of its silence is added to what has
    /// lasted since before.
    pub(super) fn hear(&mut self, silent: bool) {
        let (now, record) = (self.now, &mut self.plan.record);
        if silent {
            record.silent_since.get_or_insert(now);
            return;
        }
        let Some(since) = record.silent_since.take() else { return };
        let silence = Duration::from_secs(seconds_between(since, now));
        let little_used = record.pools.values_mut().flat_map(|pool| pool.little_used.values_mut());
        for begun in little_used.chain(&mut record.idle_since) {
            *begun = after(*begun, silence).min(now);
        }
    }
}
