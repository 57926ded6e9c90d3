//! What pods use: a share of what they ask for, what their annotations say, and what traffic costs them.

mod metrics;
mod traffic;

use serde_json::Value;

use crate::quantity;

pub(crate) use metrics::{node_metrics, pod_metrics};
pub(crate) use traffic::Traffic;
pub use traffic::{Flow, Source};

/// What a pod's annotations can say about its use.
mod annotation {
    /// The processor time it uses without any traffic (`100m`).
    pub(super) const CPU: &str = "sandbox.portolan.dev/cpu";
    /// The memory it uses (`200Mi`).
    pub(super) const MEMORY: &str = "sandbox.portolan.dev/memory";
    /// The processor time that one request a second costs (`5m`).
    pub(super) const CPU_PER_REQUEST: &str = "sandbox.portolan.dev/cpu-per-request";
}

/// Of what they ask for, idle pods use a tenth of the processor and half of the memory.
const IDLE_CPU_SHARE: i128 = 10;
const MEMORY_SHARE: i128 = 2;
/// What a pod uses that asks for nothing: 1m and 16 Mi.
const LEAST_CPU: i128 = 1;
const LEAST_MEMORY: i128 = (16 << 20) * 1000;

/// Processor time in thousandths, memory in thousandths of a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) cpu: i128,
    pub(crate) memory: i128,
}

/// What one container of a pod uses, at that many thousandths of requests a second reaching the pod.
pub(crate) fn container_usage(pod: &Value, container: &Value, load: u64) -> Usage {
    let count =
        pod.pointer("/spec/containers").and_then(Value::as_array).map_or(1, |list| list.len().max(1)) as i128;
    let given = |key: &str| {
        let text = pod.pointer("/metadata/annotations")?.get(key)?.as_str()?;
        quantity::parse(text).map(|all| all / count)
    };
    let asked = |resource: &str| {
        let text = container.pointer(&format!("/resources/requests/{resource}"))?.as_str()?;
        quantity::parse(text)
    };
    let idle =
        given(annotation::CPU).or_else(|| asked("cpu").map(|cpu| cpu / IDLE_CPU_SHARE)).unwrap_or(LEAST_CPU);
    let cost = given(annotation::CPU_PER_REQUEST).unwrap_or(0) * i128::from(load) / 1000;
    let memory = given(annotation::MEMORY).or_else(|| asked("memory").map(|memory| memory / MEMORY_SHARE));
    let limit = container.pointer("/resources/limits/cpu").and_then(Value::as_str).and_then(quantity::parse);
    let cpu = idle + cost;
    Usage { cpu: limit.map_or(cpu, |limit| cpu.min(limit)), memory: memory.unwrap_or(LEAST_MEMORY) }
}
