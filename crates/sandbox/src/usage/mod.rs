//! What pods use: a share of what they ask for, what their annotations say, and what traffic costs them.

mod histogram;
mod metered;
mod metrics;
mod record;
mod traffic;

pub use histogram::Histogram;
pub(crate) use metered::metered;
pub(crate) use metrics::{node_metrics, pod_metrics};
pub use record::Served as ServedTraffic;
pub(crate) use traffic::Traffic;
pub use traffic::{Flow, Source};

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
