//! What of a pod decides about its use, read once for each version of it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::Usage;
use crate::api::Api;
use crate::profile::{Behaviour, Curve};
use crate::quantity;
use crate::store::{Stored, at};

/// Of what they ask for, idle pods use a tenth of the processor and half of the memory.
const IDLE_CPU_SHARE: i128 = 10;
const MEMORY_SHARE: i128 = 2;
/// What a pod uses that asks for nothing: 1m and 16 Mi.
const LEAST_CPU: i128 = 1;
const LEAST_MEMORY: i128 = (16 << 20) * 1000;

/// A pod, as far as its use is concerned.
pub(crate) struct Metered {
    pub(super) runs: bool,
    pub(super) node: Box<str>,
    started: Option<Timestamp>,
    pub(super) behaviour: Behaviour,
    pub(super) containers: Box<[Container]>,
}

/// A container of it. Amounts are in thousandths.
pub(super) struct Container {
    pub(super) name: Box<str>,
    cpu: Amount,
    memory: Amount,
}

/// What a container asks for, and what it may use at the most.
struct Amount {
    request: Option<i128>,
    limit: Option<i128>,
}

/// What of a pod decides about its use. How pods of a cluster behave does not change, so that this is so for a version.
pub(crate) fn metered(api: &Api, pod: &Stored) -> Arc<Metered> {
    pod.derived(|value| Metered::of(value, api.profile.of(value)))
}

impl Metered {
    fn of(pod: &Value, behaviour: Behaviour) -> Self {
        let text = |pointer: &str| at(pod, pointer).and_then(Value::as_str);
        let containers = at(pod, "/spec/containers").and_then(Value::as_array).into_iter().flatten();
        Self {
            runs: text("/status/phase") == Some("Running"),
            node: text("/spec/nodeName").unwrap_or_default().into(),
            started: text("/status/startTime").and_then(|time| time.parse().ok()),
            behaviour,
            containers: containers.map(Container::of).collect(),
        }
    }

    /// What a running pod uses as a whole, with so many thousandths of requests a second; none if it does not run.
    pub(crate) fn usage(&self, load: u64, now: Timestamp) -> Option<Usage> {
        let mut total = Usage::default();
        for container in self.containers.iter().filter(|_| self.runs) {
            let used = self.usage_of(container, load, now);
            total.cpu += used.cpu;
            total.memory += used.memory;
            total.network += used.network;
        }
        self.runs.then_some(total)
    }

    /// What one container uses: its share of what the pod does.
    pub(super) fn usage_of(&self, container: &Container, load: u64, now: Timestamp) -> Usage {
        let age = self.started.and_then(|started| Duration::try_from(now.duration_since(started)).ok());
        let (age, containers) = (age.unwrap_or_default(), self.containers.len() as i128);
        let said = &self.behaviour;
        let idle = |curve: &Option<Curve>| curve.as_ref().map(|curve| curve.at(age) / containers);
        let by_load = |curve: &Option<Curve>| idle(curve).unwrap_or(0) * i128::from(load) / 1000;
        let cpu = idle(&said.cpu).or_else(|| Some(container.cpu.request? / IDLE_CPU_SHARE));
        let memory = idle(&said.memory).or_else(|| Some(container.memory.request? / MEMORY_SHARE));
        Usage {
            cpu: container.cpu.within(cpu.unwrap_or(LEAST_CPU) + by_load(&said.cpu_per_request)),
            memory: container
                .memory
                .within(memory.unwrap_or(LEAST_MEMORY) + by_load(&said.memory_per_request)),
            network: idle(&said.network).unwrap_or(0) + by_load(&said.network_per_request),
        }
    }
}

impl Container {
    fn of(container: &Value) -> Self {
        let asked = |pointer: &str| at(container, pointer)?.as_str().and_then(quantity::parse);
        Self {
            name: at(container, "/name").and_then(Value::as_str).unwrap_or_default().into(),
            cpu: Amount { request: asked("/resources/requests/cpu"), limit: asked("/resources/limits/cpu") },
            memory: Amount {
                request: asked("/resources/requests/memory"),
                limit: asked("/resources/limits/memory"),
            },
        }
    }
}

impl Amount {
    fn within(&self, used: i128) -> i128 {
        self.limit.map_or(used, |limit| used.min(limit))
    }
}
