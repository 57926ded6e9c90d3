//! A ClusterClass of the simulated cloud, and templates of it.

use serde_json::{Value, json};

/// The namespace of clusters that are made on demand.
pub const CLOUDS: &str = "clouds";

/// The ClusterClass `quick` with the machine type and the region as variables, and its templates.
#[must_use]
pub fn cluster_class() -> Vec<Value> {
    portolan_sandbox::cluster_class(CLOUDS, "quick", "small", &["region"])
}

/// Templates called `plain` for clusters of machines of these types, made without a ClusterClass.
#[must_use]
pub fn cluster_templates(machine_types: &[&str]) -> Vec<Value> {
    portolan_sandbox::cluster_templates(CLOUDS, "plain", machine_types)
}

/// What a CloudProvisioner says in `spec.clusterTemplate` to use the templates.
#[must_use]
pub fn from_templates(machine_types: &[&str]) -> Value {
    let reference = |group: &str, kind: &str, name: &str| json!({"apiGroup": format!("{group}.cluster.x-k8s.io"), "kind": kind, "name": name});
    let worker = |machine_type: &&str| {
        let machine = format!("plain-{machine_type}");
        json!({
            "machineType": machine_type,
            "infrastructure": reference("infrastructure", "SandboxMachineTemplate", &machine),
            "bootstrap": reference("bootstrap", "SandboxBootstrapConfigTemplate", "plain"),
        })
    };
    json!({
        "namespace": CLOUDS,
        "infrastructure": reference("infrastructure", "SandboxClusterTemplate", "plain"),
        "controlPlane": {"template": reference("controlplane", "SandboxControlPlaneTemplate", "plain")},
        "workers": machine_types.iter().map(worker).collect::<Vec<_>>(),
    })
}
