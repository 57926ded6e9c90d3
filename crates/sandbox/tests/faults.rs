//! What goes wrong: lost requests, partitions, crashes. And that it goes wrong the same way every time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::process::Command;
use std::time::Duration;

use common::{available, cluster, config_map, deployment, world};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use portolan_sandbox::{ClusterConfig, CrashPoint, FaultPlan, FaultRates, NodeConfig, World, WorldConfig};
use serde_json::json;

fn faulty(faults: FaultPlan) -> World {
    World::new(WorldConfig { seed: 3, faults, ..WorldConfig::default() })
}

#[tokio::test(start_paused = true)]
async fn a_partition_times_out_and_heals() {
    let (world, cluster) = cluster();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("a"), "default");
    let others: Api<ConfigMap> = Api::namespaced(cluster.client("b"), "default");
    world.partition("a", "c1");
    let before = world.clock().now();
    assert!(maps.list(&Default::default()).await.is_err());
    assert_eq!(world.clock().now().duration_since(before).as_secs(), 30);
    assert!(others.list(&Default::default()).await.is_ok(), "others are not cut off");
    let everything = kube::api::ListParams::default();
    let waiting = maps.list(&everything);
    let heal = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.heal("a", "c1");
    };
    let (answer, ()) = tokio::join!(waiting, heal);
    assert!(answer.is_ok(), "a request under way arrives when the link is back");
}

#[tokio::test(start_paused = true)]
async fn a_crash_is_around_one_request() {
    for (point, done) in [(CrashPoint::Before, false), (CrashPoint::After, true)] {
        let world = faulty(FaultPlan::none().crash("ctl", 2, point));
        let cluster = world.add_cluster(ClusterConfig::named("c"));
        let maps: Api<ConfigMap> = Api::namespaced(cluster.client("ctl"), "default");
        maps.create(&PostParams::default(), &config_map("one", "x")).await.unwrap();
        let (params, second) = (PostParams::default(), config_map("two", "x"));
        let request = maps.create(&params, &second);
        tokio::select! {
            biased;
            _ = request => panic!("a crashed party gets no answer"),
            () = world.crash_signal("ctl") => {}
        }
        let watcher: Api<ConfigMap> = Api::namespaced(cluster.client("observer"), "default");
        assert_eq!(watcher.get_opt("two").await.unwrap().is_some(), done, "{point:?}");
        world.restart("ctl");
        let dead = tokio::time::timeout(Duration::from_secs(60), maps.get_opt("one")).await;
        assert!(dead.is_err(), "clients of before stay dead");
        let maps: Api<ConfigMap> = Api::namespaced(cluster.client("ctl"), "default");
        assert!(maps.get_opt("one").await.unwrap().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_can_be_lost_after_the_deed() {
    let rates = FaultRates { lost_answer: 1000, ..FaultRates::default() };
    let world = faulty(FaultPlan::none().party("unlucky", rates));
    let cluster = world.add_cluster(ClusterConfig::named("c"));
    let unlucky: Api<ConfigMap> = Api::namespaced(cluster.client("unlucky"), "default");
    let lucky: Api<ConfigMap> = Api::namespaced(cluster.client("lucky"), "default");
    assert!(unlucky.create(&PostParams::default(), &config_map("m", "x")).await.is_err());
    assert!(lucky.get_opt("m").await.unwrap().is_some());
    world.stop_faults();
    assert!(unlucky.get_opt("m").await.unwrap().is_some());
}

/// A busy scenario under faults: returns the hash of its history.
fn scenario(seed: u64) -> (String, u64) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let faults = FaultPlan::none().all(FaultRates::evenly(150)).until(Duration::from_secs(120));
        let latency = (Duration::from_millis(1), Duration::from_millis(20));
        let world = World::new(WorldConfig { seed, faults, latency, ..WorldConfig::default() });
        let tasks: Vec<_> = (0..3)
            .map(|number| {
                let config = ClusterConfig::named(format!("c{number}")).nodes(2, NodeConfig::new("4", "8Gi"));
                let deployments: Api<Deployment> =
                    Api::namespaced(world.add_cluster(config).client("ctl"), "default");
                tokio::spawn(async move {
                    let wanted = deployment("web", 3);
                    while deployments.get_opt("web").await.ok().flatten().is_none() {
                        deployments.create(&PostParams::default(), &wanted).await.ok();
                        tokio::time::sleep(Duration::from_millis(500)).await;
                    }
                    let scale = Patch::Merge(json!({"spec": {"replicas": 5}}));
                    while deployments.patch_scale("web", &PatchParams::default(), &scale).await.is_err() {}
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(150)).await;
        for number in 0..3 {
            let client = world.cluster(&format!("c{number}")).unwrap().client("observer");
            assert!(available(&Api::namespaced(client, "default"), "web", 5).await);
        }
        assert_eq!(world.check(), []);
        (world.log().hash(), world.log().count())
    })
}

const SEED: &str = "PORTOLAN_SANDBOX_SCENARIO_SEED";

#[test]
fn the_same_seed_gives_the_same_history_in_two_processes() {
    if let Ok(seed) = std::env::var(SEED) {
        let (hash, count) = scenario(seed.parse().unwrap());
        println!("history {hash} {count}");
        return;
    }
    let run = |seed: u64| {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_same_seed_gives_the_same_history_in_two_processes", "--nocapture"])
            .env(SEED, seed.to_string())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().find(|line| line.contains("history ")).unwrap().to_owned()
    };
    for seed in 0..5 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
    assert_ne!(run(1), run(2), "the seed matters");
}

#[tokio::test(start_paused = true)]
async fn the_log_tells_what_happened() {
    let world = world(1);
    let cluster = world.add_cluster(ClusterConfig::named("c"));
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("ctl"), "default");
    maps.create(&PostParams::default(), &config_map("m", "x")).await.unwrap();
    let lines = world.log().lines();
    assert!(
        lines.iter().any(|line| line.contains("c ctl #1 POST /api/v1/namespaces/default/configmaps")),
        "{lines:#?}"
    );
    assert!(lines.iter().any(|line| line.contains("c added configmaps default/m @")));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_cut_off_from_everybody_and_clocks_differ() {
    let world = world(1);
    let ahead = jiff::SignedDuration::from_secs(90);
    let cluster = world.add_cluster(ClusterConfig::named("c").skew(ahead));
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client("ctl"), "default");
    let made = maps.create(&PostParams::default(), &config_map("m", "x")).await.unwrap();
    assert_eq!(made.metadata.creation_timestamp.unwrap().0.duration_since(world.clock().now()), ahead);
    world.isolate("c");
    assert!(maps.list(&Default::default()).await.is_err());
    assert!(Api::<ConfigMap>::all(cluster.client("other")).list(&Default::default()).await.is_err());
    world.rejoin("c");
    assert!(maps.list(&Default::default()).await.is_ok());
}
