//! A MultiClusterDeployment through time: what was asked for, what is ready where, and whether that ever dipped.

use std::collections::BTreeMap;

/// A MultiClusterDeployment through time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Workload {
    /// Replicas that are asked for, over all clusters.
    pub(super) desired: i64,
    /// Replicas that have no cluster.
    pub(super) pending: i64,
    /// Ready replicas by cluster.
    pub(super) ready: BTreeMap<String, i64>,
    /// The clusters in the order in which replicas became ready where none were, with the second. One that had none in between is
    /// there again.
    pub(super) order: Vec<(String, f64)>,
    /// When it was asked for first.
    pub(super) asked_at: Option<f64>,
    /// When all replicas were ready first.
    pub(super) complete_at: Option<f64>,
    /// How many replicas at most were lost of those that had been ready and were still asked for; and when.
    pub(super) dip: Option<(i64, f64)>,
    /// The most replicas that were ready so far, of those that are still asked for.
    reached: i64,
}

impl Workload {
    /// So many replicas are asked for.
    pub(super) fn set_desired(&mut self, desired: i64, seconds: f64) {
        if desired > 0 && self.asked_at.is_none() {
            self.asked_at = Some(seconds);
        }
        self.desired = desired;
        self.reached = self.reached.min(desired);
        self.look(seconds);
    }

    /// So many replicas are ready in a cluster.
    pub(super) fn set_ready(&mut self, cluster: &str, ready: i64, seconds: f64) {
        let before = self.ready.insert(cluster.to_owned(), ready).unwrap_or_default();
        if before == 0 && ready > 0 {
            self.order.push((cluster.to_owned(), seconds));
        }
        self.look(seconds);
    }

    /// A cluster is gone, with its replicas.
    pub(super) fn forget(&mut self, cluster: &str, seconds: f64) {
        self.ready.remove(cluster);
        self.look(seconds);
    }

    /// Ready replicas over all clusters.
    pub(super) fn ready(&self) -> i64 {
        self.ready.values().sum()
    }

    /// A workload that grows has lost nothing yet, but what is ready of it may be lost.
    fn look(&mut self, seconds: f64) {
        let ready = self.ready();
        let lost = self.reached - ready;
        if lost > 0 && self.dip.is_none_or(|(worst, _)| lost > worst) {
            self.dip = Some((lost, seconds));
        }
        self.reached = self.reached.max(ready.min(self.desired));
        if ready >= self.desired && self.desired > 0 && self.complete_at.is_none() {
            self.complete_at = Some(seconds);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dip_is_a_loss_that_nobody_asked_for() {
        let mut web = Workload::default();
        web.set_desired(4, 1.0);
        web.set_ready("a", 3, 2.0);
        assert_eq!((web.dip, web.complete_at), (None, None), "it grows");
        web.set_ready("b", 1, 3.0);
        assert_eq!(web.complete_at, Some(3.0));
        web.set_desired(6, 4.0);
        assert_eq!(web.dip, None, "more was asked for");
        web.set_ready("b", 3, 5.0);
        web.set_desired(4, 6.0);
        web.set_ready("b", 1, 7.0);
        assert_eq!(web.dip, None, "fewer were asked for");
        web.set_ready("a", 1, 8.0);
        web.set_ready("a", 2, 9.0);
        assert_eq!(web.dip, Some((2, 8.0)));
        assert_eq!(web.order, [("a".to_owned(), 2.0), ("b".to_owned(), 3.0)]);
    }

    #[test]
    fn a_loss_while_it_grows_is_one_too() {
        let mut web = Workload::default();
        web.set_desired(4, 1.0);
        web.set_ready("a", 3, 2.0);
        web.set_ready("a", 1, 3.0);
        assert_eq!((web.dip, web.complete_at), (Some((2, 3.0)), None), "it was never complete");
        let mut web = Workload::default();
        web.set_desired(4, 1.0);
        web.set_ready("a", 4, 2.0);
        web.set_desired(8, 3.0);
        web.set_ready("b", 2, 4.0);
        assert_eq!(web.dip, None);
        web.set_ready("a", 3, 5.0);
        assert_eq!(web.dip, Some((1, 5.0)), "five of the six that were ready are left");
        web.set_desired(5, 6.0);
        web.set_ready("a", 2, 7.0);
        assert_eq!(web.dip, Some((1, 5.0)), "one of five is no more than one of six");
    }

    #[test]
    fn more_than_are_asked_for_may_go() {
        let mut web = Workload::default();
        web.set_desired(2, 1.0);
        web.set_ready("a", 2, 2.0);
        web.set_ready("b", 2, 3.0);
        web.set_ready("a", 0, 4.0);
        assert_eq!(web.dip, None, "it has moved");
        web.set_desired(6, 5.0);
        assert_eq!(web.dip, None);
    }

    #[test]
    fn what_goes_with_its_cluster_is_lost() {
        let mut web = Workload::default();
        web.set_desired(3, 1.0);
        web.set_ready("a", 1, 2.0);
        web.set_ready("cloud", 2, 3.0);
        web.forget("elsewhere", 4.0);
        assert_eq!(web.dip, None);
        web.forget("cloud", 5.0);
        assert_eq!((web.ready(), web.dip), (1, Some((2, 5.0))));
    }

    #[test]
    fn a_cluster_that_had_none_is_in_the_order_again() {
        let mut web = Workload::default();
        web.set_desired(1, 1.0);
        for (cluster, ready, at) in
            [("a", 0, 2.0), ("a", 1, 3.0), ("a", 2, 4.0), ("b", 1, 5.0), ("a", 0, 6.0), ("a", 1, 7.0)]
        {
            web.set_ready(cluster, ready, at);
        }
        web.forget("b", 8.0);
        web.set_ready("b", 1, 9.0);
        let order: Vec<(&str, f64)> = web.order.iter().map(|(name, at)| (name.as_str(), *at)).collect();
        assert_eq!(order, [("a", 3.0), ("b", 5.0), ("a", 7.0), ("b", 9.0)]);
    }
}
