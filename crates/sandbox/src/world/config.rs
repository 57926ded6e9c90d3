//! What a world and its clusters are made of.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::FaultPlan;
use crate::profile::Profile;

/// A world as it begins.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// Everything random comes from this number.
    pub seed: u64,
    /// What the clock shows at first.
    pub start: Timestamp,
    /// What goes wrong.
    pub faults: FaultPlan,
    /// How long a request and its answer take together: drawn between the two.
    pub latency: (Duration, Duration),
    /// How many past events of each resource a cluster remembers.
    pub ring_size: usize,
    /// How often it is noted where requests of users go, while there are any. What is told of served traffic is as exact as
    /// this; the load of pods does not depend on it.
    pub traffic_sample: Duration,
}

impl Default for WorldConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            start: Timestamp::UNIX_EPOCH,
            faults: FaultPlan::none(),
            latency: (Duration::ZERO, Duration::ZERO),
            ring_size: 10_000,
            traffic_sample: Duration::from_millis(250),
        }
    }
}

/// A cluster as it begins.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    pub(crate) name: String,
    pub(crate) nodes: Vec<(String, NodeConfig)>,
    pub(crate) start_up: Duration,
    pub(crate) shut_down: Duration,
    pub(crate) run_time: Duration,
    pub(crate) ring_size: Option<usize>,
    pub(crate) skew: SignedDuration,
    pub(crate) profile: Profile,
    pub(crate) heartbeats: bool,
    pub(crate) stateful_sets: bool,
}

impl ClusterConfig {
    /// A cluster without nodes.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            nodes: Vec::new(),
            start_up: Duration::from_secs(1),
            shut_down: Duration::from_secs(1),
            run_time: Duration::from_secs(5),
            ring_size: None,
            skew: SignedDuration::ZERO,
            profile: Profile::default(),
            heartbeats: false,
            stateful_sets: true,
        }
    }

    /// Adds `count` simulated nodes, called `<cluster>-<number>`.
    #[must_use]
    pub fn nodes(mut self, count: usize, node: NodeConfig) -> Self {
        for _ in 0..count {
            let name = format!("{}-{}", self.name, self.nodes.len() + 1);
            self.nodes.push((name, node.clone()));
        }
        self
    }

    /// Adds a simulated node of that name.
    #[must_use]
    pub fn node(mut self, name: impl Into<String>, node: NodeConfig) -> Self {
        self.nodes.push((name.into(), node));
        self
    }

    /// How long a pod takes from its binding to being ready (one second, if not said).
    #[must_use]
    pub fn start_up(mut self, time: Duration) -> Self {
        self.start_up = time;
        self
    }

    /// How long a pod takes to stop, at most its grace period (one second, if not said).
    #[must_use]
    pub fn shut_down(mut self, time: Duration) -> Self {
        self.shut_down = time;
        self
    }

    /// How long pods run that are not restarted always (five seconds, if not said).
    #[must_use]
    pub fn run_time(mut self, time: Duration) -> Self {
        self.run_time = time;
        self
    }

    /// How pods behave on its nodes, by image and label.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Lets nodes renew a Lease every ten seconds, as real ones do; without, they are silent when all is well.
    #[must_use]
    pub fn heartbeats(mut self, on: bool) -> Self {
        self.heartbeats = on;
        self
    }

    /// Runs the controller of StatefulSets (yes, if not said); without it they are stored, and nobody acts on them.
    #[must_use]
    pub fn stateful_sets(mut self, on: bool) -> Self {
        self.stateful_sets = on;
        self
    }

    /// How far this cluster's clock is ahead of the world's (behind, if negative).
    #[must_use]
    pub fn skew(mut self, ahead: SignedDuration) -> Self {
        self.skew = ahead;
        self
    }

    /// How many past events of each resource this cluster remembers.
    #[must_use]
    pub fn ring_size(mut self, events: usize) -> Self {
        self.ring_size = Some(events);
        self
    }
}

/// A simulated node.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    pub(crate) cpu: String,
    pub(crate) memory: String,
    pub(crate) pods: u32,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) resources: BTreeMap<String, String>,
    pub(crate) taints: Vec<Value>,
    pub(crate) unschedulable: bool,
}

impl NodeConfig {
    /// A node of that size, as quantities are written (`"4"`, `"16Gi"`), for 110 pods.
    #[must_use]
    pub fn new(cpu: impl Into<String>, memory: impl Into<String>) -> Self {
        Self {
            cpu: cpu.into(),
            memory: memory.into(),
            pods: 110,
            labels: BTreeMap::new(),
            resources: BTreeMap::new(),
            taints: Vec::new(),
            unschedulable: false,
        }
    }

    /// How many pods fit at most.
    #[must_use]
    pub fn pods(mut self, pods: u32) -> Self {
        self.pods = pods;
        self
    }

    /// Adds a label.
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// Adds a further resource, such as `nvidia.com/gpu`.
    #[must_use]
    pub fn resource(mut self, name: impl Into<String>, amount: impl Into<String>) -> Self {
        self.resources.insert(name.into(), amount.into());
        self
    }

    /// Adds a taint.
    #[must_use]
    pub fn taint(mut self, key: &str, value: Option<&str>, effect: &str) -> Self {
        let mut taint = json!({"key": key, "effect": effect});
        if let Some(value) = value {
            taint["value"] = json!(value);
        }
        self.taints.push(taint);
        self
    }

    /// Whether the node is cordoned.
    #[must_use]
    pub fn unschedulable(mut self, yes: bool) -> Self {
        self.unschedulable = yes;
        self
    }
}
