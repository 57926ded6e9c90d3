//! How fast and how large: `cargo bench -p portolan-sandbox`. Each measurement is a process of its own, so that the
//! memory it prints is its own.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a benchmark looks at the real clock")]
#![allow(missing_docs, reason = "a benchmark is a program")]

use std::process::Command;
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use kube::ResourceExt;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use portolan_sandbox::{ClusterConfig, NodeConfig, World, WorldConfig};
use serde_json::json;

/// A name, and what is measured at a size.
type Measurement = (&'static str, fn(usize));

const MEASUREMENTS: &[Measurement] =
    &[("writes", writes), ("clusters", clusters), ("pods", pods), ("idle", idle)];

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if let [name, size] = arguments.as_slice() {
        let run = MEASUREMENTS.iter().find(|(known, _)| known == name).unwrap().1;
        run(size.parse().unwrap());
        return;
    }
    for (name, sizes) in [
        ("writes", [1_000, 10_000]),
        ("clusters", [100, 1_000]),
        ("pods", [10_000, 100_000]),
        ("idle", [1, 5]),
    ] {
        for size in sizes {
            let status = Command::new(std::env::current_exe().unwrap())
                .args([name, &size.to_string()])
                .status()
                .unwrap();
            assert!(status.success(), "{name} {size}");
        }
    }
}

fn memory() -> u64 {
    let pages: u64 =
        std::fs::read_to_string("/proc/self/statm").unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096 / (1 << 20)
}

fn run<F: Future>(paused: bool, future: F) -> F::Output {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(paused).build().unwrap();
    runtime.block_on(future)
}

/// Writes of 1 KB objects through a client, while ten watchers see each event in order.
fn writes(count: usize) {
    run(false, async move {
        let world = World::new(WorldConfig { ring_size: 1_000_000, ..WorldConfig::default() });
        let cluster = world.add_cluster(ClusterConfig::named("c"));
        let from = cluster.revision().to_string();
        let watchers: Vec<_> = (0..10)
            .map(|number| {
                let maps: Api<ConfigMap> = Api::namespaced(cluster.client(&format!("w{number}")), "default");
                let from = from.clone();
                tokio::spawn(async move {
                    let mut events = maps.watch(&WatchParams::default(), &from).await.unwrap().boxed();
                    let (mut seen, mut last) = (0, 0_u64);
                    while seen < count {
                        if let Some(WatchEvent::Added(map)) = events.try_next().await.unwrap()
                            && map.name_any().starts_with("m-")
                        {
                            let revision: u64 = map.resource_version().unwrap().parse().unwrap();
                            assert!(revision > last, "in order");
                            (seen, last) = (seen + 1, revision);
                        }
                    }
                })
            })
            .collect();
        let maps: Api<ConfigMap> = Api::namespaced(cluster.client("writer"), "default");
        let started = Instant::now();
        for number in 0..count {
            let map = json!({"metadata": {"name": format!("m-{number}")}, "data": {"key": "x".repeat(900)}});
            maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
        }
        let written = started.elapsed();
        for watcher in watchers {
            watcher.await.unwrap();
        }
        let seen = started.elapsed();
        let rate = count as f64 / written.as_secs_f64();
        println!(
            "writes     {count:>7} of 1 KB: {rate:>7.0}/s, seen by 10 watchers after {seen:.2?}, {} MiB",
            memory()
        );
    });
}

/// Clusters of five nodes, with their controllers settled.
fn clusters(count: usize) {
    run(true, async move {
        let started = Instant::now();
        let world = World::new(WorldConfig::default());
        for number in 0..count {
            world.add_cluster(
                ClusterConfig::named(format!("c{number}")).nodes(5, NodeConfig::new("4", "16Gi")),
            );
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        println!("clusters   {count:>7} of 5 nodes: {:.2?}, {} MiB", started.elapsed(), memory());
    });
}

/// Bound pods in one cluster, and a page of their list.
fn pods(count: usize) {
    run(true, async move {
        let world = World::new(WorldConfig::default());
        let nodes = count.div_ceil(100);
        let cluster =
            world.add_cluster(ClusterConfig::named("c").nodes(nodes, NodeConfig::new("64", "256Gi")));
        let pods: Api<Pod> = Api::namespaced(cluster.client("writer"), "default");
        let started = Instant::now();
        for number in 0..count {
            let pod = json!({
                "metadata": {"name": format!("p-{number}"), "labels": {"app": "x"}},
                "spec": {"nodeName": format!("c-{}", number % nodes + 1), "containers": [{"name": "c", "image": "x:1",
                    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]},
            });
            pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
        let made = started.elapsed();
        let running = cluster.count("", "pods");
        let started = Instant::now();
        let page = pods.list(&ListParams::default().limit(500)).await.unwrap();
        assert_eq!((page.items.len(), running), (500, count));
        println!(
            "pods       {count:>7} running: {made:.2?}, page of 500 in {:.2?}, {} MiB",
            started.elapsed(),
            memory()
        );
    });
}

/// A virtual hour in which nothing happens.
fn idle(count: usize) {
    run(true, async move {
        let world = World::new(WorldConfig::default());
        let mut watches = Vec::new();
        for number in 0..count {
            let cluster = world.add_cluster(
                ClusterConfig::named(format!("c{number}")).nodes(5, NodeConfig::new("4", "16Gi")),
            );
            let maps: Api<ConfigMap> = Api::all(cluster.client("watcher"));
            watches.push(tokio::spawn(async move {
                let events = maps.watch(&WatchParams::default().timeout(290), "0").await.unwrap();
                events.try_collect::<Vec<_>>().await.unwrap().len()
            }));
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        let started = Instant::now();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        println!("idle hour  {count:>7} clusters: {:.2?}", started.elapsed());
    });
}
