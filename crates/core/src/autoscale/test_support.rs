//! What tests of this folder share.

use super::{ClusterSnapshot, MemberClock, PodPhase, PodRequests, PodSnapshot, Readiness, Reading, Sample};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use portolan_api::autoscaling::{Metric, MetricTarget, MetricTargetType, MetricType, ResourceMetric};
use std::collections::BTreeMap;
use std::sync::Arc;

/// So many seconds after a day on which nothing else happens.
pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// A pod that has been ready for long and requests a whole CPU.
pub(super) fn pod(index: usize) -> PodSnapshot {
    let cpu = BTreeMap::from([("cpu".to_owned(), 1000)]);
    let requests =
        PodRequests { pod: BTreeMap::new(), containers: BTreeMap::from([("web".to_owned(), cpu)]) };
    PodSnapshot {
        name: format!("web-{index}"),
        phase: PodPhase::Running,
        deleted: false,
        started_at: Some(at(-100_000)),
        readiness: Some(Readiness { ready: true, since: at(-99_990) }),
        requests: Arc::new(requests),
    }
}

/// A number that was just measured.
pub(super) fn sample(value: u64, now: Timestamp) -> Sample {
    Sample { value, at: now, window: SignedDuration::from_secs(30) }
}

/// A cluster with so many ready pods; the first ones use so many thousandths of a CPU, the others are not measured.
pub(super) fn cluster(name: &str, replicas: u32, used: &[u64], now: Timestamp) -> ClusterSnapshot {
    let pods: Vec<PodSnapshot> = (0..replicas as usize).map(pod).collect();
    let samples = pods.iter().zip(used).map(|(pod, used)| (pod.name.clone(), sample(*used, now))).collect();
    ClusterSnapshot {
        name: name.to_owned(),
        replicas,
        reachable: true,
        error: None,
        observed_at: Some(now),
        clock: MemberClock::default(),
        pods,
        readings: vec![Reading::Pods(samples)],
    }
}

/// A cluster whose pods share a load of so many thousandths of a CPU.
pub(super) fn loaded(name: &str, replicas: u32, load: u64, now: Timestamp) -> ClusterSnapshot {
    let count = u64::from(replicas.max(1));
    let used: Vec<u64> = (0..count).map(|index| load / count + u64::from(index < load % count)).collect();
    cluster(name, replicas, &used, now)
}

/// The use of CPU, in percent of the requests.
pub(super) fn cpu(percent: i32) -> Metric {
    let target = MetricTarget { average_utilization: Some(percent), ..MetricTarget::default() };
    Metric { resource: Some(ResourceMetric { name: "cpu".into(), target }), ..Metric::default() }
}

/// An external metric.
pub(super) fn external(type_: MetricTargetType, target: &str) -> Metric {
    let quantity = Some(Quantity(target.to_owned()));
    let mut external = portolan_api::autoscaling::ExternalMetric::default();
    external.metric.name = "queue".into();
    external.target.type_ = type_;
    match type_ {
        MetricTargetType::Value => external.target.value = quantity,
        _ => external.target.average_value = quantity,
    }
    Metric { type_: MetricType::External, external: Some(external), ..Metric::default() }
}
