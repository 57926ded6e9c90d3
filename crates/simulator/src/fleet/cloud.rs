//! A CloudProvisioner as the cloud of a scenario.

use super::Assumption;
use crate::scenario::{Boot, Cloud, CloudMachineType, ControlPlane, Quantity};
use k8s_openapi::apimachinery::pkg::api::resource;
use portolan_api::CloudProvisioner;
use portolan_api::cloudprovisioner::MachineType;
use portolan_api::duration::Duration;
use portolan_core::capacity::milli;
use serde_json::{Map, Value};

/// The fields of the spec that the scenario says otherwise, or that a simulated cloud has no use for.
const LEFT_OUT: [&str; 11] = [
    "cloudClusterName",
    "cloudProvider",
    "clusterClass",
    "clusterPricePerHour",
    "credentials",
    "credentialsSecretRef",
    "floatingIP",
    "kubernetesVersion",
    "latencies",
    "machineTypes",
    "region",
];

/// The one CloudProvisioner that a scenario can have: the first by name with machine types.
pub(super) fn chosen(provisioners: &[CloudProvisioner]) -> Option<&CloudProvisioner> {
    let usable = provisioners
        .iter()
        .filter(|each| !each.spec.machine_types.is_empty() && each.metadata.deletion_timestamp.is_none());
    usable.min_by_key(|each| each.metadata.name.clone())
}

/// The cloud, and what is assumed about it.
pub(super) fn cloud(provisioners: &[CloudProvisioner]) -> (Option<Cloud>, Vec<Assumption>) {
    let chosen = chosen(provisioners);
    let name = |each: &CloudProvisioner| each.metadata.name.clone().unwrap_or_default();
    let mut assumptions = Vec::new();
    for other in provisioners.iter().filter(|each| chosen.map(&name) != Some(name(each))) {
        let about = format!("CloudProvisioner {}", name(other));
        let problem = if other.spec.machine_types.is_empty() {
            "it has no machineTypes, so that the size of its nodes is not known"
        } else {
            "a scenario has one cloud"
        };
        assumptions.push(Assumption::new(about, problem, "there is none"));
    }
    let Some(found) = chosen else { return (None, assumptions) };
    let about = format!("CloudProvisioner {}", name(found));
    let assumed =
        "the network of a cluster takes 10s to 20s, its control plane 60s to 120s, a machine 60s to 90s";
    assumptions.push(
        Assumption::new(&about, "how long machines take to boot is not known", assumed)
            .hint(Some("give cloud.machineTypes with name and boot in your scenario file")),
    );
    let unpriced = found.spec.machine_types.iter().any(|each| each.price_per_hour.is_none());
    if unpriced {
        assumptions.push(
            Assumption::new(&about, "its machine types have no prices", "they cost nothing")
                .hint(Some("give cloud.machineTypes with name and pricePerHour in your scenario file")),
        );
    }
    if found.spec.machine_types.iter().any(|each| !each.resources.is_empty()) {
        let problem = "a scenario has CPU and memory of machine types only";
        assumptions.push(Assumption::new(&about, problem, "they have no other resources"));
    }
    let spec = serde_json::to_value(&found.spec).ok();
    let fields: Map<String, Value> = match spec {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let kept =
        fields.into_iter().filter(|(key, value)| !LEFT_OUT.contains(&key.as_str()) && !value.is_null());
    let cloud = Cloud {
        name: found.spec.cloud_cluster_name.clone(),
        site: None,
        infrastructure: boot(10, 20),
        control_plane: ControlPlane {
            boot: boot(60, 120),
            price_per_hour: found.spec.cluster_price_per_hour.unwrap_or_default(),
        },
        machine_types: found.spec.machine_types.iter().map(machine_type).collect(),
        max_machines: None,
        provisioner: kept.collect(),
    };
    (Some(cloud), assumptions)
}

fn machine_type(of: &MachineType) -> CloudMachineType {
    CloudMachineType {
        name: of.name.clone(),
        cpu: quantity(&of.cpu),
        memory: quantity(&of.memory),
        price_per_hour: of.price_per_hour.unwrap_or_default(),
        boot: boot(60, 90),
        fails_per_mille: 0,
    }
}

fn quantity(of: &resource::Quantity) -> Quantity {
    Quantity { text: of.0.clone(), milli: milli(&of.0).unwrap_or(0).max(0) }
}

const fn boot(least: u64, most: u64) -> Boot {
    Boot { least: Duration::from_secs(least), most: Duration::from_secs(most) }
}
