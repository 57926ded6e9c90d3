//! What a cloud offers, how long it takes, and how it fails.

use std::collections::BTreeMap;
use std::time::Duration;

use portolan_runtime::Seed;
use rand::Rng;

use crate::world::{ClusterConfig, NodeConfig};

/// A cloud as it begins.
#[derive(Clone, Debug)]
pub struct CloudConfig {
    /// The machine types, by name.
    pub machine_types: BTreeMap<String, CloudMachine>,
    /// How long the network and the address of a cluster take.
    pub infrastructure: BootTime,
    /// How long the control plane takes after that until its API server answers.
    pub control_plane: BootTime,
    /// What a control plane costs per hour, in millionths.
    pub control_plane_price: u64,
    /// The largest number of worker machines at a time: the quota.
    pub max_machines: Option<usize>,
    /// The largest number of clusters at a time: the quota.
    pub max_clusters: Option<usize>,
    /// How the clusters behave; their names and nodes come from Cluster API.
    pub clusters: ClusterConfig,
}

impl Default for CloudConfig {
    fn default() -> Self {
        Self {
            machine_types: BTreeMap::new(),
            infrastructure: BootTime::between(5, 10),
            control_plane: BootTime::between(60, 90),
            control_plane_price: 0,
            max_machines: None,
            max_clusters: None,
            clusters: ClusterConfig::named(""),
        }
    }
}

impl CloudConfig {
    /// Adds a machine type.
    #[must_use]
    pub fn machine_type(mut self, name: impl Into<String>, machine: CloudMachine) -> Self {
        self.machine_types.insert(name.into(), machine);
        self
    }
}

/// A machine type.
#[derive(Clone, Debug)]
pub struct CloudMachine {
    /// What its nodes offer to pods, and their labels beside those that every node has.
    pub node: NodeConfig,
    /// Further resources of its nodes, such as nvidia.com/gpu.
    pub resources: BTreeMap<String, String>,
    /// How long a machine takes from being asked for until its node is ready. A third of it passes until the machine
    /// is provisioned.
    pub boot: BootTime,
    /// What a machine costs per hour, in millionths.
    pub price: u64,
    /// How many of a thousand machines cannot be made, and what the cloud says then.
    pub fails: Option<(u32, CloudFailure)>,
    /// How many of a thousand machines are provisioned and never become a node; the cloud does not say why.
    pub hangs: u32,
    /// How many of a thousand machines are slow, and how many times as long they take.
    pub slow: (u32, u32),
}

impl CloudMachine {
    /// A machine that boots in 40 to 60 seconds, costs nothing and never fails.
    #[must_use]
    pub fn new(node: NodeConfig) -> Self {
        Self {
            node,
            resources: BTreeMap::new(),
            boot: BootTime::between(40, 60),
            price: 0,
            fails: None,
            hangs: 0,
            slow: (0, 1),
        }
    }

    /// How long it takes to boot.
    #[must_use]
    pub fn boot(mut self, time: BootTime) -> Self {
        self.boot = time;
        self
    }

    /// What it costs per hour, in millionths.
    #[must_use]
    pub fn price(mut self, micros: u64) -> Self {
        self.price = micros;
        self
    }

    /// What becomes of one machine.
    pub(super) fn draw(&self, seed: &Seed) -> Course {
        let happens = |what: &str, rate: u32| seed.child(what).rng().next_u32() % 1000 < rate;
        let (slow, times) = self.slow;
        let time = self.boot.draw(&seed.child("boot"));
        let failure = self.fails.as_ref().filter(|(rate, _)| happens("fails", *rate));
        Course {
            boot: if happens("slow", slow) { time.saturating_mul(times) } else { time },
            failure: failure.map(|(_, failure)| failure.clone()),
            hangs: happens("hangs", self.hangs),
        }
    }
}

/// What becomes of one machine.
pub(super) struct Course {
    pub(super) boot: Duration,
    pub(super) failure: Option<CloudFailure>,
    pub(super) hangs: bool,
}

/// A time that is drawn anew for each machine, between two limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootTime {
    /// The shortest.
    pub least: Duration,
    /// The longest.
    pub most: Duration,
}

impl BootTime {
    /// Between two numbers of seconds.
    #[must_use]
    pub const fn between(least: u64, most: u64) -> Self {
        Self { least: Duration::from_secs(least), most: Duration::from_secs(most) }
    }

    /// Always the same.
    #[must_use]
    pub const fn exactly(seconds: u64) -> Self {
        Self::between(seconds, seconds)
    }

    pub(super) fn draw(self, seed: &Seed) -> Duration {
        let spread = u64::try_from(self.most.saturating_sub(self.least).as_millis()).unwrap_or(u64::MAX);
        let drawn = seed.rng().next_u64() % spread.saturating_add(1);
        self.least + Duration::from_millis(drawn)
    }
}

/// Why the cloud does not make something, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudFailure {
    /// One word in CamelCase.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

impl CloudFailure {
    /// A failure with these words.
    pub fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into() }
    }
}
