//! A ClusterClass of the simulated cloud.

use serde_json::Value;

/// The namespace of clusters that are made on demand.
pub const CLOUDS: &str = "clouds";

/// The ClusterClass `quick` with the machine type and the region as variables, and its templates.
#[must_use]
pub fn cluster_class() -> Vec<Value> {
    portolan_sandbox::cluster_class(CLOUDS, "quick", "small", &["region"])
}
