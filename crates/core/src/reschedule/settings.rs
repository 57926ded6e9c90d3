//! What a MultiClusterRescheduler asks for.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use portolan_api::{MultiClusterReschedulerSpec, selector};
use std::collections::BTreeMap;
use std::time::Duration;

/// What a MultiClusterRescheduler asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How often workloads are looked at.
    pub interval: Duration,
    /// How long a workload stays away at least.
    pub minimum_stay: Duration,
    /// How long there must be room at home.
    pub room_stable_for: Duration,
    /// How many percent more replicas than those that come must have room.
    pub margin: u32,
    /// How long the replicas may take to be ready at home.
    pub move_timeout: Duration,
    /// How many workloads move at the same time.
    pub max_concurrent: u32,
    /// The workloads that are looked at, by their labels.
    pub selector: Option<LabelSelector>,
    /// Whether nothing is to be moved, only said.
    pub dry_run: bool,
    /// Whether no further move is to be begun.
    pub paused: bool,
}

impl Settings {
    /// Reads the spec.
    #[must_use]
    pub fn of(spec: &MultiClusterReschedulerSpec) -> Self {
        Self {
            interval: spec.interval.0,
            minimum_stay: spec.minimum_stay.0,
            room_stable_for: spec.room_stable_for.0,
            margin: u32::try_from(spec.margin).unwrap_or(0),
            move_timeout: spec.move_timeout.0,
            max_concurrent: u32::try_from(spec.max_concurrent_moves).unwrap_or(1),
            selector: spec.workload_selector.clone(),
            dry_run: spec.dry_run,
            paused: spec.paused,
        }
    }

    /// Whether workloads with these labels are looked at.
    #[must_use]
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector.as_ref().is_none_or(|wanted| selector::matches(wanted, labels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rescheduler_needs_nothing_but_a_name() {
        let settings = Settings::of(&MultiClusterReschedulerSpec::default());
        assert_eq!((settings.minimum_stay, settings.max_concurrent), (Duration::from_secs(300), 1));
        assert_eq!((settings.margin, settings.room_stable_for), (10, Duration::from_secs(30)));
        assert!(settings.selects(&BTreeMap::new()));
    }
}
