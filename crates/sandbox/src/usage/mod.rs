//! What pods use: a share of what they ask for, what their annotations say, and what traffic costs them.

mod histogram;
mod metrics;
mod record;
mod traffic;

use std::time::Duration;

use serde_json::Value;

use crate::api::Api;
use crate::profile::{Behaviour, Curve};
use crate::quantity;
use crate::store::at;

pub use histogram::Histogram;
pub(crate) use metrics::{node_metrics, pod_metrics};
pub use record::Served as ServedTraffic;
pub(crate) use traffic::Traffic;
pub use traffic::{Flow, Source};

/// Of what they ask for, idle pods use a tenth of the processor and half of the memory.
const IDLE_CPU_SHARE: i128 = 10;
const MEMORY_SHARE: i128 = 2;
/// What a pod uses that asks for nothing: 1m and 16 Mi.
const LEAST_CPU: i128 = 1;
const LEAST_MEMORY: i128 = (16 << 20) * 1000;

/// Processor time in thousandths, memory and network (a second) in thousandths of a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) cpu: i128,
    pub(crate) memory: i128,
    pub(crate) network: i128,
}

/// What a pod uses at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodUsage {
    /// Thousandths of a processor.
    pub cpu_millis: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Bytes a second over the network, both ways together.
    pub network_bytes_per_second: u64,
}

impl From<Usage> for PodUsage {
    fn from(usage: Usage) -> Self {
        let whole = |thousandths: i128| u64::try_from(thousandths / 1000).unwrap_or(0);
        Self {
            cpu_millis: u64::try_from(usage.cpu).unwrap_or(0),
            memory_bytes: whole(usage.memory),
            network_bytes_per_second: whole(usage.network),
        }
    }
}

/// What a running pod uses as a whole; none if it does not run.
pub(crate) fn pod_usage(api: &Api, pod: &Value, load: u64) -> Option<Usage> {
    if at(pod, "/status/phase").and_then(Value::as_str) != Some("Running") {
        return None;
    }
    let scene = Scene::of(api, pod, load);
    let mut total = Usage::default();
    for container in at(pod, "/spec/containers").and_then(Value::as_array).into_iter().flatten() {
        let used = container_usage(&scene, container);
        total.cpu += used.cpu;
        total.memory += used.memory;
        total.network += used.network;
    }
    Some(total)
}

/// What the use of a pod's containers depends on.
pub(crate) struct Scene {
    behaviour: Behaviour,
    age: Duration,
    /// Thousandths of requests a second that reach the pod.
    load: i128,
    containers: i128,
}

impl Scene {
    pub(crate) fn of(api: &Api, pod: &Value, load: u64) -> Self {
        let started = at(pod, "/status/startTime").and_then(Value::as_str);
        let started = started.and_then(|time| time.parse::<jiff::Timestamp>().ok());
        let age = started.and_then(|started| Duration::try_from(api.now().duration_since(started)).ok());
        let containers = at(pod, "/spec/containers").and_then(Value::as_array).map_or(1, Vec::len);
        Self {
            behaviour: api.profile.of(pod),
            age: age.unwrap_or_default(),
            load: load.into(),
            containers: containers.max(1) as i128,
        }
    }
}

/// What one container of a pod uses: its share of what the pod does.
pub(crate) fn container_usage(scene: &Scene, container: &Value) -> Usage {
    let said = &scene.behaviour;
    let idle = |curve: &Option<Curve>| curve.as_ref().map(|curve| curve.at(scene.age) / scene.containers);
    let by_load = |curve: &Option<Curve>| idle(curve).unwrap_or(0) * scene.load / 1000;
    let asked = |pointer: &str| at(container, pointer)?.as_str().and_then(quantity::parse);
    let cpu = idle(&said.cpu)
        .or_else(|| asked("/resources/requests/cpu").map(|cpu| cpu / IDLE_CPU_SHARE))
        .unwrap_or(LEAST_CPU);
    let memory = idle(&said.memory)
        .or_else(|| asked("/resources/requests/memory").map(|memory| memory / MEMORY_SHARE))
        .unwrap_or(LEAST_MEMORY);
    let cpu = cpu + by_load(&said.cpu_per_request);
    let memory = memory + by_load(&said.memory_per_request);
    let within = |used: i128, limit: &str| asked(limit).map_or(used, |limit| used.min(limit));
    Usage {
        cpu: within(cpu, "/resources/limits/cpu"),
        memory: within(memory, "/resources/limits/memory"),
        network: idle(&said.network).unwrap_or(0) + by_load(&said.network_per_request),
    }
}
