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
    /// The clusters in the order in which replicas first became ready there, with the second.
    pub(super) order: Vec<(String, f64)>,
    /// When it was asked for first.
    pub(super) asked_at: Option<f64>,
    /// When all replicas were ready first.
    pub(super) complete_at: Option<f64>,
    /// By how many replicas it fell short at most, after it had been complete and without having been asked for more; and when.
    pub(super) dip: Option<(i64, f64)>,
    complete: bool,
}

impl Workload {
    /// So many replicas are asked for.
    pub(super) fn set_desired(&mut self, desired: i64, seconds: f64) {
        if desired > self.desired {
            self.complete = false;
        }
        if desired > 0 && self.asked_at.is_none() {
            self.asked_at = Some(seconds);
        }
        self.desired = desired;
        self.look(seconds);
    }

    /// So many replicas are ready in a cluster.
    pub(super) fn set_ready(&mut self, cluster: &str, ready: i64, seconds: f64) {
        if ready > 0 && !self.order.iter().any(|(known, _)| known == cluster) {
            self.order.push((cluster.to_owned(), seconds));
        }
        self.ready.insert(cluster.to_owned(), ready);
        self.look(seconds);
    }

    /// A cluster is gone, with its replicas.
    pub(super) fn forget(&mut self, cluster: &str) {
        self.ready.remove(cluster);
    }

    /// Ready replicas over all clusters.
    pub(super) fn ready(&self) -> i64 {
        self.ready.values().sum()
    }

    fn look(&mut self, seconds: f64) {
        let missing = self.desired - self.ready();
        if missing <= 0 {
            self.complete = true;
            if self.desired > 0 && self.complete_at.is_none() {
                self.complete_at = Some(seconds);
            }
        } else if self.complete && self.dip.is_none_or(|(worst, _)| missing > worst) {
            self.dip = Some((missing, seconds));
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
}
