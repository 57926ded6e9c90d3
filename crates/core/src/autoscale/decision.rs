//! What is decided.

use super::cluster::ClusterWish;
use super::memory::Memory;
use super::schedule::Minimum;
use jiff::Timestamp;
use portolan_api::autoscaling::CurrentMetric;
use portolan_api::conditions::Finding;
use std::collections::BTreeMap;

/// What is to be done, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The replicas in the spec of the workload.
    pub current: u32,
    /// What they are to be.
    pub desired: u32,
    /// If they are to change: why, for the event.
    pub cause: Option<String>,
    /// The weights by which placement divides a total; those not named have 1. Empty if replicas are for each location.
    pub division: BTreeMap<String, u32>,
    /// Ready, AbleToScale, ScalingActive and ScalingLimited; the last two only where they can be told.
    pub findings: Vec<Finding>,
    /// What is to be remembered; the change only once it was carried out, see [`Decision::carried_out`].
    pub memory: Memory,
    /// The least number of replicas that holds now.
    pub minimum: Minimum,
    /// What the load of each cluster asks for.
    pub clusters: Vec<ClusterWish>,
    /// The metrics as measured over all clusters.
    pub metrics: Vec<CurrentMetric>,
    /// The metrics in short.
    pub metrics_summary: String,
    /// When to decide again at the latest.
    pub look_again_at: Timestamp,
}
