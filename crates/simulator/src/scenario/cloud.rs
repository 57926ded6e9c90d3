//! The cloud of a scenario.

use super::Quantity;
use portolan_api::duration::Duration;
use portolan_api::money::Money;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A cloud behind Cluster API, with the CloudProvisioner that uses it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cloud {
    /// The name of the cloud cluster and of its CloudProvisioner.
    #[serde(default = "cloud_name")]
    pub name: String,
    /// Where it is, for the latencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// How long the network and the address of a cluster take.
    #[serde(default)]
    pub infrastructure: Boot,
    /// The control plane of a cluster.
    #[serde(default)]
    pub control_plane: ControlPlane,
    /// The machines that nodes are made of.
    pub machine_types: Vec<CloudMachineType>,
    /// The largest number of worker machines at a time: the quota of the cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_machines: Option<u32>,
    /// Further fields of the spec of the CloudProvisioner, such as headroom or scaleInAfter.
    #[serde(default)]
    pub provisioner: Map<String, Value>,
}

/// A time that is drawn for each machine, between two limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Boot {
    /// The shortest time.
    pub least: Duration,
    /// The longest time.
    pub most: Duration,
}

/// The control plane of a cloud cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControlPlane {
    /// How long it takes until its API server answers.
    pub boot: Boot,
    /// What it costs per hour.
    #[serde(default)]
    pub price_per_hour: Money,
}

/// A kind of machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CloudMachineType {
    /// The cloud's name for it.
    pub name: String,
    /// The CPUs that are left for pods.
    pub cpu: Quantity,
    /// The memory that is left for pods.
    pub memory: Quantity,
    /// What one machine costs per hour.
    pub price_per_hour: Money,
    /// How long a machine takes until its node is ready.
    pub boot: Boot,
    /// How many of a thousand machines cannot be made.
    #[serde(default)]
    pub fails_per_mille: u32,
}

fn cloud_name() -> String {
    "cloud".to_owned()
}
