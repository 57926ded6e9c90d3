//! CloudProvisioners as the clouds of a scenario.

use super::Assumption;
use crate::scenario::{Boot, Cloud, CloudMachineType, ControlPlane, Quantity};
use k8s_openapi::apimachinery::pkg::api::resource;
use portolan_api::CloudProvisioner;
use portolan_api::cloudprovisioner::MachineType;
use portolan_api::duration::Duration;
use portolan_core::capacity::milli;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The fields of the spec that the scenario says otherwise, or that a simulated cloud has no use for.
const LEFT_OUT: [&str; 12] = [
    "cloudClusterName",
    "cloudProvider",
    "clusterClass",
    "clusterPricePerHour",
    "clusterTemplate",
    "credentials",
    "credentialsSecretRef",
    "floatingIP",
    "kubernetesVersion",
    "latencies",
    "machineTypes",
    "region",
];

/// The CloudProvisioners that become clouds: those with machine types, by name, and of several with the same cloudClusterName
/// the first.
pub(super) fn chosen(provisioners: &[CloudProvisioner]) -> Vec<&CloudProvisioner> {
    let mut usable: Vec<&CloudProvisioner> = provisioners
        .iter()
        .filter(|each| !each.spec.machine_types.is_empty() && each.metadata.deletion_timestamp.is_none())
        .collect();
    usable.sort_by_key(|each| each.metadata.name.clone());
    let mut seen = BTreeSet::new();
    usable.retain(|each| seen.insert(&each.spec.cloud_cluster_name));
    usable
}

/// The clouds, and what is assumed about them.
pub(super) fn clouds(provisioners: &[CloudProvisioner]) -> (Vec<Cloud>, Vec<Assumption>) {
    let chosen = chosen(provisioners);
    let mut assumptions = Vec::new();
    for other in provisioners.iter().filter(|each| !chosen.iter().any(|of| name(of) == name(each))) {
        let about = format!("CloudProvisioner {}", name(other));
        let problem = if other.metadata.deletion_timestamp.is_some() {
            "it is being deleted"
        } else if other.spec.machine_types.is_empty() {
            "it has no machineTypes, so that the size of its nodes is not known"
        } else {
            "another CloudProvisioner has its cloudClusterName"
        };
        assumptions.push(Assumption::new(about, problem, "there is none"));
    }
    let clouds = chosen.into_iter().map(|found| cloud(found, &mut assumptions)).collect();
    (clouds, assumptions)
}

fn name(of: &CloudProvisioner) -> String {
    of.metadata.name.clone().unwrap_or_default()
}

fn cloud(found: &CloudProvisioner, assumptions: &mut Vec<Assumption>) -> Cloud {
    let about = format!("CloudProvisioner {}", name(found));
    let assumed =
        "the network of a cluster takes 10s to 20s, its control plane 60s to 120s, a machine 60s to 90s";
    assumptions.push(
        Assumption::new(&about, "how long machines take to boot is not known", assumed)
            .hint(Some("give machineTypes of the cloud with name and boot in your scenario file")),
    );
    let unpriced = found.spec.machine_types.iter().any(|each| each.price_per_hour.is_none());
    if unpriced {
        assumptions.push(
            Assumption::new(&about, "its machine types have no prices", "they cost nothing").hint(Some(
                "give machineTypes of the cloud with name and pricePerHour in your scenario file",
            )),
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
    Cloud {
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
    }
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
