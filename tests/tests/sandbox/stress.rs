//! Four threads and real time: what no simulation on one thread can show.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::{ForeignCluster, MultiClusterDeployment, conditions};
use portolan_runtime::Seed;
use portolan_sandbox::{NodeConfig, World, WorldConfig};
use portolan_tests::simulation::{CONTROLLER, Contender, Fleet, apply};
use portolan_tests::{NAMESPACE, workload};
use rand::RngExt;
use serde_json::json;
use std::time::{Duration, Instant};

const MEMBERS: [&str; 4] = ["m1", "m2", "m3", "m4"];
const WORKLOADS: usize = 12;
/// How long edits go on.
const STORM: Duration = Duration::from_secs(15);
/// Only a broken program takes longer to settle.
const DEADLINE: Duration = Duration::from_secs(120);

/// No edit here gives a copy up: replicas change, ForeignClusters are labelled, measured and cordoned, another one joins.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn edits_on_four_threads_delete_no_copy_and_leave_nothing_stuck() {
    let start = Timestamp::from_second(1_800_000_000).unwrap();
    let world = World::new(WorldConfig { seed: 1, start, ..WorldConfig::default() });
    let members = MEMBERS.map(|name| (name, 2, NodeConfig::new("8", "32Gi")));
    let fleet = Fleet::new(world, &members).await;
    let controller =
        tokio::spawn(Contender::alone().run(fleet.world.clone(), fleet.hub.clone(), Seed::new(1)));
    let user = fleet.hub.client("user");
    for number in 0..WORKLOADS {
        let places = json!({"locations": [MEMBERS[number % 4], MEMBERS[(number + 1) % 4]]});
        apply(&user, &workload(&format!("app{number}"), 2, places)).await;
    }
    settled(&fleet).await;
    let clusters: Api<ForeignCluster> = Api::all(user.clone());
    let workloads: Api<MultiClusterDeployment> = Api::namespaced(user.clone(), NAMESPACE);
    let mut rng = Seed::new(1).child("stress").rng();
    let began = Instant::now();
    while began.elapsed() < STORM {
        let number: u32 = rng.random_range(0..1000);
        let member = MEMBERS[rng.random_range(0..MEMBERS.len())];
        let edit = match number % 4 {
            0 => json!({"metadata": {"labels": {"edit": number.to_string()}}}),
            1 => json!({"spec": {"unschedulable": number % 8 == 1}}),
            2 => {
                json!({"spec": {"taints": [{"key": "edit", "value": number.to_string(), "effect": "NoSchedule"}]}})
            }
            _ => json!({"spec": {"taints": null, "unschedulable": null}}),
        };
        clusters.patch(member, &PatchParams::default(), &Patch::Merge(edit)).await.unwrap();
        let name = format!("app{}", rng.random_range(0..WORKLOADS));
        let replicas = Patch::Merge(json!({"spec": {"replicas": rng.random_range(1..=3)}}));
        workloads.patch(&name, &PatchParams::default(), &replicas).await.unwrap();
        tokio::time::sleep(Duration::from_millis(rng.random_range(1..40))).await;
    }
    for member in MEMBERS {
        let edit = Patch::Merge(json!({"spec": {"taints": null, "unschedulable": null}}));
        clusters.patch(member, &PatchParams::default(), &edit).await.unwrap();
    }
    settled(&fleet).await;
    let deleted: Vec<_> = fleet
        .world
        .log()
        .lines()
        .into_iter()
        .filter(|line| {
            line.contains(&format!("{CONTROLLER} #"))
                && line.contains(" DELETE ")
                && line.contains("/deployments/")
        })
        .collect();
    assert!(deleted.is_empty(), "copies were deleted that are wanted: {deleted:?}");
    controller.abort();
}

/// Waits until every workload is as it is asked for.
async fn settled(fleet: &Fleet) {
    let began = Instant::now();
    loop {
        let stuck = stuck(fleet).await;
        if stuck.is_empty() {
            return;
        }
        assert!(began.elapsed() < DEADLINE, "stuck: {stuck:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// What is not as it is asked for.
async fn stuck(fleet: &Fleet) -> Vec<String> {
    let mut stuck = Vec::new();
    for workload in fleet.workloads().await {
        let name = workload.metadata.name.clone().unwrap_or_default();
        let status = workload.status.unwrap_or_default();
        let current = status.observed_generation == workload.metadata.generation;
        let is_ready = conditions::is_true(&status.conditions, conditions::ConditionType::Ready);
        if !current || !is_ready {
            stuck.push(format!("{name}: {:?} ready {:?}", status.locations_summary, status.ready_summary));
        }
        for member in &fleet.members {
            let api: Api<Deployment> = Api::namespaced(member.client("user"), NAMESPACE);
            let copy = api.get_opt(&name).await.unwrap().and_then(|copy| copy.spec?.replicas);
            let wanted = workload.spec.placement.locations.iter().any(|place| place == member.name());
            if copy != wanted.then_some(workload.spec.replicas) {
                stuck.push(format!("{name} in {}: {copy:?} of {}", member.name(), workload.spec.replicas));
            }
        }
    }
    stuck
}
