//! What waits for want of room and may go to the cloud.

use crate::capacity::{Amounts, Shape};
use std::collections::BTreeMap;

/// A workload with replicas that have no cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// The workload, as kind/namespace/name.
    pub workload: String,
    /// What one replica needs.
    pub shape: Shape,
    /// How many replicas have no cluster, or only stay where they are for want of another one.
    pub replicas: u32,
    /// Whether a cloud cluster would help: the placement's `to_cloud`.
    pub to_cloud: bool,
    /// The cluster that the replicas should be near: the location that lacks room.
    pub near: Option<String>,
}

/// Pods that need a node, by shape.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand(BTreeMap<Shape, u32>);

/// Sums up what a cloud cluster would help.
#[must_use]
pub fn demand<'a>(waiting: impl IntoIterator<Item = &'a Waiting>) -> Demand {
    let mut demand = Demand::default();
    for each in waiting.into_iter().filter(|each| each.to_cloud) {
        demand.add(&each.shape, each.replicas);
    }
    demand
}

impl Demand {
    /// Adds pods of a shape, such as those of the headroom.
    pub fn add(&mut self, shape: &Shape, pods: u32) {
        if pods > 0 {
            let mine = self.0.entry(shape.clone()).or_insert(0);
            *mine = mine.saturating_add(pods);
        }
    }

    /// Adds all pods of another demand.
    pub fn extend(&mut self, other: &Self) {
        for (shape, pods) in other.iter() {
            self.add(shape, pods);
        }
    }

    /// Takes away up to so many pods of a shape.
    pub(super) fn take(&mut self, shape: &Shape, pods: u32) {
        if let Some(mine) = self.0.get_mut(shape) {
            *mine = mine.saturating_sub(pods);
            if *mine == 0 {
                self.0.remove(shape);
            }
        }
    }

    /// The shapes with how many pods of each.
    pub fn iter(&self) -> impl Iterator<Item = (&Shape, u32)> {
        self.0.iter().map(|(shape, pods)| (shape, *pods))
    }

    /// How many pods in all.
    #[must_use]
    pub fn pods(&self) -> u32 {
        self.0.values().fold(0, |sum, pods| sum.saturating_add(*pods))
    }

    /// Whether no pod needs a node.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What all pods request together.
    #[must_use]
    pub fn requests(&self) -> Amounts {
        let mut requests = Amounts::default();
        for (shape, pods) in self.iter() {
            requests.add(&shape.requests, i64::from(pods));
        }
        requests
    }
}

impl FromIterator<(Shape, u32)> for Demand {
    fn from_iter<I: IntoIterator<Item = (Shape, u32)>>(pods: I) -> Self {
        let mut demand = Self::default();
        for (shape, pods) in pods {
            demand.add(&shape, pods);
        }
        demand
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::shape;
    use super::*;
    use crate::capacity::{CPU, MEMORY};

    #[test]
    fn only_replicas_that_may_go_to_the_cloud_count_and_shapes_are_summed() {
        let waits = |cpu, replicas, to_cloud| Waiting {
            workload: "MultiClusterDeployment/shop/web".into(),
            shape: shape(cpu, 512),
            replicas,
            to_cloud,
            near: None,
        };
        let mut demand =
            demand(&[waits(1000, 2, true), waits(500, 4, true), waits(1000, 3, true), waits(1000, 9, false)]);
        assert_eq!(demand.iter().map(|(_, pods)| pods).max(), Some(5), "two workloads with the same shape");
        assert_eq!(demand.pods(), 9);
        assert_eq!(demand.requests().get(CPU), 7000, "5 x 1 + 4 x 0.5");
        assert_eq!(demand.requests().get(MEMORY), 9 * 512 * 1_048_576_000);
        demand.add(&shape(250, 128), 2);
        assert_eq!((demand.pods(), demand.requests().get(CPU)), (11, 7500), "with two pods of headroom");
    }
}
