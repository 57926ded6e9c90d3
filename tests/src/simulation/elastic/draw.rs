//! What an elastic world begins with.

use super::cloud::{CLOUDS, from_templates};
use crate::simulation::CONTROLLER;
use crate::simulation::tally::{Drawn, Tally};
use crate::{autoscaler, workload};
use portolan_sandbox::{
    BootTime, CloudConfig, CloudFailure, CloudMachine, CrashPoint, FaultPlan, FaultRates, NodeConfig,
};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

/// What each machine type and each control plane costs per hour, in millionths.
const SMALL: u64 = 50_000;
const LARGE: u64 = 90_000;
const CONTROL_PLANE: u64 = 10_000;

/// What users have declared, and the clusters and the cloud that there are.
pub(super) struct Plan {
    /// Name, nodes, and CPUs of each node.
    pub(super) members: Vec<(&'static str, usize, u32)>,
    pub(super) cloud: CloudConfig,
    /// The CloudProvisioners, as their users mean them.
    pub(super) provisioners: Vec<Value>,
    pub(super) rescheduler: Value,
    pub(super) autoscaler: Value,
    pub(super) web: Value,
}

impl Plan {
    pub(super) fn draw(rng: &mut ChaCha8Rng, tally: &mut Tally) -> Self {
        let mut members = vec![("home", rng.random_range(1..=2), rng.random_range(3..=6))];
        if rng.random_bool(0.5) {
            members.push(("near", 1, rng.random_range(2..=4)));
        }
        let mut provisioners = vec![provisioner(rng, tally, "cp1", "cloud1")];
        if rng.random_bool(0.3) {
            tally.add(Drawn::SecondProvisioner);
            provisioners.push(provisioner(rng, tally, "cp2", "cloud2"));
        }
        Self {
            members,
            cloud: cloud(rng, tally),
            provisioners,
            rescheduler: rescheduler(rng),
            autoscaler: scaler(rng),
            web: web(rng),
        }
    }
}

/// Some requests of the controllers fail, and now and then they crash around one.
pub(super) fn faults(rng: &mut ChaCha8Rng, tally: &mut Tally) -> (FaultPlan, usize) {
    let rates = FaultRates::evenly(rng.random_range(0..=60));
    let mut plan = FaultPlan::none().party(CONTROLLER, rates);
    let crashes = rng.random_range(0..=4);
    for _ in 0..crashes {
        tally.add(Drawn::Crash);
        let point = if rng.random_bool(0.5) { CrashPoint::Before } else { CrashPoint::After };
        plan = plan.crash(CONTROLLER, rng.random_range(20..1500), point);
    }
    (plan, crashes)
}

fn cloud(rng: &mut ChaCha8Rng, tally: &mut Tally) -> CloudConfig {
    let mut small = CloudMachine::new(NodeConfig::new("4", "16Gi")).price(SMALL);
    small.boot = BootTime::between(20, rng.random_range(30..=90));
    if rng.random_bool(0.3) {
        tally.add(Drawn::MachinesFail);
        small.fails = Some((200, CloudFailure::new("InsufficientCapacity", "no host has room")));
    }
    if rng.random_bool(0.3) {
        tally.add(Drawn::MachinesHang);
        small.hangs = 150;
    }
    if rng.random_bool(0.3) {
        tally.add(Drawn::MachinesSlow);
        small.slow = (300, 8);
    }
    let large = CloudMachine::new(NodeConfig::new("8", "32Gi")).price(LARGE);
    CloudConfig {
        control_plane: BootTime::between(30, rng.random_range(40..=100)),
        control_plane_price: CONTROL_PLANE,
        ..CloudConfig::default().machine_type("small", small).machine_type("large", large)
    }
}

fn provisioner(rng: &mut ChaCha8Rng, tally: &mut Tally, name: &str, cluster: &str) -> Value {
    let mut types = vec![json!({"name": "small", "cpu": "4", "memory": "16Gi", "pricePerHour": "0.05"})];
    if rng.random_bool(0.5) {
        types.push(json!({"name": "large", "cpu": "8", "memory": "32Gi", "pricePerHour": "0.09"}));
    }
    let seconds =
        |rng: &mut ChaCha8Rng, least: u32, most: u32| format!("{}s", rng.random_range(least..=most));
    let mut spec = json!({
        "cloudClusterName": cluster, "cloudProvider": "OpenStack", "region": "rennes", "kubernetesVersion": "v1.36.3",
        "clusterClass": {"name": "quick", "namespace": CLOUDS},
        "machineTypes": types, "clusterPricePerHour": "0.01",
        "maxNodes": rng.random_range(2..=6),
        "scaleInAfter": seconds(rng, 60, 300), "decommissionAfter": seconds(rng, 60, 600),
        "provisionTimeout": seconds(rng, 150, 400), "retryAfter": seconds(rng, 5, 60),
    });
    if rng.random_bool(0.6) {
        tally.add(Drawn::CostLimited);
        spec["maxCostPerHour"] = json!(format!("0.{}", rng.random_range(11..=35)));
    }
    if rng.random_bool(0.2) {
        tally.add(Drawn::Headroom);
        spec["headroom"] = json!({"pods": rng.random_range(1..=3), "requests": {"cpu": "500m"}});
    }
    if rng.random_bool(0.3)
        && let Some(fields) = spec.as_object_mut()
    {
        tally.add(Drawn::FromTemplates);
        fields.remove("clusterClass");
        fields.insert("clusterTemplate".to_owned(), from_templates(&["small", "large"]));
    }
    json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "CloudProvisioner", "metadata": {"name": name}, "spec": spec,
    })
}

fn rescheduler(rng: &mut ChaCha8Rng) -> Value {
    json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "MultiClusterRescheduler", "metadata": {"name": "back"},
        "spec": {
            "minimumStay": format!("{}s", rng.random_range(30..=300)),
            "roomStableFor": format!("{}s", rng.random_range(5..=40)),
            "maxConcurrentMoves": rng.random_range(1..=2),
        },
    })
}

fn scaler(rng: &mut ChaCha8Rng) -> Value {
    let mut scaler = autoscaler("web", "web", rng.random_range(1..=2), rng.random_range(6..=14));
    if rng.random_bool(0.7) {
        // Without a window, a pod that is too young to be measured is given up again, as upstream does.
        let window = rng.random_range(60..=300);
        scaler["spec"]["behavior"] = json!({"scaleDown": {"stabilizationWindowSeconds": window}});
    }
    scaler
}

/// A workload whose pods use 20m for each request a second, of the 500m that they ask for.
fn web(rng: &mut ChaCha8Rng) -> Value {
    let mode = if rng.random_bool(0.7) { "Total" } else { "PerLocation" };
    let mut web =
        workload("web", 1, json!({"locations": ["home"], "enableBursting": true, "replicasMode": mode}));
    let template = &mut web["spec"]["template"];
    template["metadata"]["annotations"] =
        json!({"sandbox.portolan.dev/cpu-per-request": "20m", "sandbox.portolan.dev/cpu": "0m"});
    template["spec"]["containers"][0]["resources"]["requests"] = json!({"cpu": "500m", "memory": "64Mi"});
    web
}

/// A workload that takes room at home and nowhere else.
pub(super) fn tenant(replicas: u32) -> Value {
    let mut tenant = workload("tenant", i32::try_from(replicas).unwrap_or(0), json!({"locations": ["home"]}));
    tenant["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = json!({"cpu": "900m"});
    tenant
}
