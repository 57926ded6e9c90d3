//! The clouds of a scenario: Cluster API in the hub, and for each a ClusterClass and a CloudProvisioner.

use super::{SimulationError, access, manifests};
use crate::scenario::{Boot, Cloud, CloudMachineType, Scenario};
use portolan_runtime::chain;
use portolan_sandbox::{
    BootTime, CloudApi, CloudConfig, CloudFailure, CloudMachine, Cluster, NodeConfig, World, cluster_class,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The namespace of what the only cloud is made from; each of several clouds has one of its own.
const NAMESPACE: &str = "clouds";

/// The name of what a cloud is made from.
const CLASS: &str = "simulated";

/// Installs the clouds of a scenario, each with its CloudProvisioner; answers them by name.
pub(super) async fn install(
    scenario: &Scenario,
    world: &World,
    hub: &Cluster,
) -> Result<BTreeMap<String, CloudApi>, SimulationError> {
    let mut installed = BTreeMap::new();
    let is_alone = scenario.all_clouds().count() == 1;
    for cloud in scenario.all_clouds() {
        let namespace = if is_alone { NAMESPACE.to_owned() } else { format!("{NAMESPACE}-{}", cloud.name) };
        let api = if is_alone {
            CloudApi::install(world, hub, config(cloud)).await
        } else {
            CloudApi::install_in(world, hub, config(cloud), &namespace).await
        };
        let api = api
            .map_err(|error| SimulationError::SetUp { cluster: cloud.name.clone(), reason: chain(&error) })?;
        installed.insert(cloud.name.clone(), api);
        let user = hub.client("user");
        access::apply(&user, &manifests::open_namespace(&namespace)).await?;
        let provisioner = provisioner(scenario, cloud, &namespace);
        for object in class(cloud, &namespace).iter().chain([&provisioner]) {
            access::apply(&user, object).await?;
        }
    }
    Ok(installed)
}

fn config(cloud: &Cloud) -> CloudConfig {
    let start = CloudConfig {
        infrastructure: boot(&cloud.infrastructure),
        control_plane: boot(&cloud.control_plane.boot),
        control_plane_price: cloud.control_plane.price_per_hour.micros,
        max_machines: cloud.max_machines.map(|most| most as usize),
        ..CloudConfig::default()
    };
    cloud.machine_types.iter().fold(start, |config, each| config.machine_type(&each.name, machine(each)))
}

fn machine(of: &CloudMachineType) -> CloudMachine {
    let node = NodeConfig::new(&of.cpu.text, &of.memory.text);
    let mut machine = CloudMachine::new(node).boot(boot(&of.boot)).price(of.price_per_hour.micros);
    if of.fails_per_mille > 0 {
        let failure = CloudFailure::new("InstanceCreateFailed", "the scenario lets some machines fail");
        machine.fails = Some((of.fails_per_mille, failure));
    }
    machine
}

fn boot(time: &Boot) -> BootTime {
    BootTime { least: time.least.0, most: time.most.0 }
}

fn provisioner(scenario: &Scenario, cloud: &Cloud, namespace: &str) -> Value {
    let members = scenario.clusters.iter();
    let latencies: Vec<_> =
        members.filter_map(|member| manifests::latency(scenario, &cloud.name, &member.name)).collect();
    let types: Vec<Value> = cloud
        .machine_types
        .iter()
        .map(|each| {
            json!({
                "name": each.name, "cpu": each.cpu.text, "memory": each.memory.text, "pricePerHour": each.price_per_hour,
            })
        })
        .collect();
    let mut spec = json!({
        "cloudClusterName": cloud.name, "cloudProvider": "Sandbox", "kubernetesVersion": "v1.36.3",
        "clusterClass": {"name": CLASS, "namespace": namespace},
        "machineTypes": types, "clusterPricePerHour": cloud.control_plane.price_per_hour, "latencies": latencies,
    });
    if let Some(fields) = spec.as_object_mut() {
        fields.extend(cloud.provisioner.clone());
    }
    json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "CloudProvisioner", "metadata": {"name": cloud.name}, "spec": spec,
    })
}

/// The ClusterClass of the cloud, and its templates.
fn class(cloud: &Cloud, namespace: &str) -> Vec<Value> {
    let first = cloud.machine_types.first().map(|each| each.name.as_str()).unwrap_or_default();
    cluster_class(namespace, CLASS, first, &[])
}
