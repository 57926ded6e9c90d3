//! What a workload asks for.

use crate::capacity::Shape;
use portolan_api::placement::{Placement, ReplicasMode};
use portolan_api::selector;
use std::collections::BTreeMap;

/// What a workload asks for.
#[derive(Clone, Debug)]
pub struct PlacementRequest {
    /// What one replica needs.
    pub shape: Shape,
    /// How many replicas: in each location or in all, as the mode says.
    pub replicas: u32,
    /// How the number is meant.
    pub mode: ReplicasMode,
    /// The shares of clusters when a total is divided; those not named have 1.
    pub weights: BTreeMap<String, u32>,
    /// How clusters are chosen.
    pub placement: Placement,
    /// Whether what does not fit in the chosen clusters goes to further ones.
    pub bursting: bool,
}

impl PlacementRequest {
    /// Whether the cluster selector, if there is one, matches the labels.
    #[must_use]
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let selector = self.placement.cluster_selector.as_ref();
        selector.is_none_or(|selector| selector::matches(selector, labels))
    }

    /// Whether replicas may go to other clusters than the chosen ones.
    pub(super) fn may_overflow(&self) -> bool {
        self.bursting || self.placement.enable_substitution
    }
}
