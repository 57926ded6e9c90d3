//! What is known of an autoscaler beside its object.

use jiff::Timestamp;
use portolan_api::MultiClusterHorizontalPodAutoscaler;
use portolan_api::autoscaling::Metric;
use portolan_api::multiclusterhorizontalpodautoscaler::ScaleTargetRef;
use portolan_core::autoscale::{ClusterSnapshot, Memory};
use std::collections::BTreeMap;

/// What is known of an autoscaler beside its object.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// What this is about.
    about: Option<About>,
    /// What it remembers; the status is written less often.
    pub(super) memory: Memory,
    /// What each cluster told last.
    pub(super) clusters: BTreeMap<String, ClusterSnapshot>,
}

#[derive(Clone, Debug, PartialEq)]
struct About {
    uid: Option<String>,
    target: ScaleTargetRef,
    /// The metrics that were read, in their order: readings are known by their position.
    metrics: Vec<Metric>,
}

impl Known {
    /// Forgets what was about another object, another workload or other metrics. What is not known then is what the status
    /// remembers, unless the spec has changed since it was written: nobody knows which workload that was about.
    pub(super) fn follow(
        &mut self,
        object: &MultiClusterHorizontalPodAutoscaler,
        replicas: u32,
        now: Timestamp,
    ) {
        let about = About {
            uid: object.metadata.uid.clone(),
            target: object.spec.scale_target_ref.clone(),
            metrics: object.spec.metrics.clone(),
        };
        match &self.about {
            Some(before) if *before == about => {}
            Some(before) if before.uid == about.uid && before.target == about.target => {
                self.clusters.values_mut().for_each(|cluster| cluster.readings.clear());
            }
            Some(before) if before.uid == about.uid => *self = Self::default(),
            Some(_) | None => {
                let generation = object.metadata.generation;
                let written = object.status.as_ref().filter(|status| {
                    status.observed_generation.is_some() && status.observed_generation == generation
                });
                let memory = written.map(|status| Memory::of_status(status).restored(replicas, now));
                *self = Self { memory: memory.unwrap_or_default(), ..Self::default() };
            }
        }
        self.about = Some(about);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_core::autoscale::{MemberClock, Reading};
    use serde_json::json;

    fn autoscaler(target: &str, resource: &str, generation: i64) -> MultiClusterHorizontalPodAutoscaler {
        let object = json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "MultiClusterHorizontalPodAutoscaler",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "generation": generation},
            "spec": {
                "scaleTargetRef": {"kind": "MultiClusterDeployment", "name": target}, "maxReplicas": 9,
                "metrics": [{"type": "Resource", "resource": {
                    "name": resource, "target": {"type": "Utilization", "averageUtilization": 50}}}],
            },
            "status": {
                "observedGeneration": 1, "currentReplicas": 3, "desiredReplicas": 3,
                "recommendations": [{"replicas": 7, "time": "2026-01-01T00:00:00Z"}],
            },
        });
        serde_json::from_value(object).unwrap()
    }

    /// What is known after a look at an autoscaler, with one cluster that told something.
    fn known() -> Known {
        let mut known = Known::default();
        known.follow(&autoscaler("web", "memory", 1), 3, Timestamp::UNIX_EPOCH);
        let cluster = ClusterSnapshot {
            name: "c1".into(),
            replicas: 3,
            reachable: true,
            error: None,
            observed_at: None,
            clock: MemberClock::default(),
            pods: Vec::new(),
            readings: vec![Reading::Value { value: 1, at: Timestamp::UNIX_EPOCH }],
        };
        known.clusters.insert("c1".into(), cluster);
        known
    }

    #[test]
    fn readings_are_not_taken_for_those_of_other_metrics() {
        let mut known = known();
        known.follow(&autoscaler("web", "memory", 2), 3, Timestamp::UNIX_EPOCH);
        assert_eq!(known.clusters["c1"].readings.len(), 1, "the same metrics");
        known.follow(&autoscaler("web", "cpu", 3), 3, Timestamp::UNIX_EPOCH);
        assert!(known.clusters["c1"].readings.is_empty());
        assert_eq!(known.memory.recommendations.len(), 2, "what was recommended is of the same workload");
    }

    #[test]
    fn what_is_remembered_of_one_workload_is_not_used_for_another() {
        let mut known = known();
        known.follow(&autoscaler("api", "memory", 2), 3, Timestamp::UNIX_EPOCH);
        assert!(known.clusters.is_empty() && known.memory == Memory::default());
        let mut restarted = Known::default();
        restarted.follow(&autoscaler("api", "memory", 2), 3, Timestamp::UNIX_EPOCH);
        assert_eq!(restarted.memory, Memory::default(), "the status was written for another spec");
    }
}
