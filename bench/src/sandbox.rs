//! The sandbox alone.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use portolan_sandbox::{ClusterConfig, NodeConfig, World, WorldConfig};
use serde_json::json;

use crate::measure::Report;

const WATCHERS: usize = 10;

/// On one thread, as simulations are.
fn run<F: Future>(paused: bool, future: F) -> Result<F::Output> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(paused).build()?;
    Ok(runtime.block_on(future))
}

/// Writes through a client, while ten watchers see each event in order.
pub(crate) fn writes(count: usize) -> Result<Report> {
    // A watcher a task, on both cores.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async move {
        let world = World::new(WorldConfig { ring_size: 1_000_000, ..WorldConfig::default() });
        let cluster = world.add_cluster(ClusterConfig::named("c"));
        let from = cluster.revision().to_string();
        let watchers: Vec<_> = (0..WATCHERS)
            .map(|number| {
                let maps: Api<ConfigMap> = Api::namespaced(cluster.client(&format!("w{number}")), "default");
                tokio::spawn(see_all(maps, from.clone(), count))
            })
            .collect();
        let maps: Api<ConfigMap> = Api::namespaced(cluster.client("writer"), "default");
        let data = "x".repeat(900);
        let started = Instant::now();
        for number in 0..count {
            let map = json!({"metadata": {"name": format!("m-{number}")}, "data": {"key": data}});
            maps.create(&PostParams::default(), &serde_json::from_value(map)?).await?;
        }
        let written = started.elapsed();
        for watcher in watchers {
            watcher.await??;
        }
        let seen = started.elapsed();
        Ok(Report::new(seen)?
            .at_least("writes", count as f64 / written.as_secs_f64(), "a second", 5000.0)
            .at_least("seen by all 10 watchers", count as f64 / seen.as_secs_f64(), "a second", 5000.0))
    })
}

async fn see_all(maps: Api<ConfigMap>, from: String, count: usize) -> Result<()> {
    let mut events = maps.watch(&WatchParams::default(), &from).await?.boxed();
    let (mut seen, mut last) = (0, 0_u64);
    while seen < count {
        let event = events.try_next().await?.context("the watch ended")?;
        if let WatchEvent::Added(map) = event
            && map.name_any().starts_with("m-")
        {
            let revision: u64 = map.resource_version().context("no version")?.parse()?;
            ensure!(revision > last, "{} came after a later one", map.name_any());
            ensure!(map.name_any() == format!("m-{seen}"), "{} came as number {seen}", map.name_any());
            (seen, last) = (seen + 1, revision);
        }
    }
    Ok(())
}

/// Clusters of five nodes, with their controllers settled.
pub(crate) fn clusters(count: usize) -> Result<Report> {
    run(true, async move {
        let started = Instant::now();
        let world = World::new(WorldConfig::default());
        for number in 0..count {
            let config = ClusterConfig::named(format!("c{number}"));
            world.add_cluster(config.nodes(5, NodeConfig::new("4", "16Gi")));
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        let report = Report::new(started.elapsed())?;
        let memory = crate::measure::memory_mib(std::process::id())?;
        Ok(report
            .figure("made and settled in", started.elapsed().as_secs_f64(), "s")
            .at_most("memory", memory, "MiB", 2048.0))
    })?
}

/// Running pods in one cluster, and a page of their list.
pub(crate) fn pods(count: usize) -> Result<Report> {
    run(true, async move {
        let world = World::new(WorldConfig::default());
        let nodes = count.div_ceil(100);
        let config = ClusterConfig::named("c").nodes(nodes, NodeConfig::new("64", "256Gi"));
        let cluster = world.add_cluster(config);
        let pods: Api<Pod> = Api::namespaced(cluster.client("writer"), "default");
        let started = Instant::now();
        for number in 0..count {
            let pod = json!({
                "metadata": {"name": format!("p-{number}"), "labels": {"app": "x"}},
                "spec": {"nodeName": format!("c-{}", number % nodes + 1), "containers": [{"name": "c", "image": "x:1",
                    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]},
            });
            pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
        let made = started.elapsed();
        let memory = crate::measure::memory_mib(std::process::id())?;
        let started = Instant::now();
        let page = pods.list(&ListParams::default().limit(500)).await?;
        let listed = started.elapsed();
        let running = page
            .items
            .iter()
            .filter(|pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running"));
        ensure!(running.count() == 500 && cluster.count("", "pods") == count, "not all pods run");
        Ok(Report::new(made)?
            .figure("made and running in", made.as_secs_f64(), "s")
            .at_most("a page of 500", listed.as_secs_f64() * 1000.0, "ms", 50.0)
            .at_most("memory", memory, "MiB", 1536.0))
    })?
}

/// A virtual hour in which nothing happens, watched.
pub(crate) fn idle(count: usize) -> Result<Report> {
    run(true, async move {
        let world = World::new(WorldConfig::default());
        for number in 0..count {
            let config = ClusterConfig::named(format!("c{number}"));
            let cluster = world.add_cluster(config.nodes(5, NodeConfig::new("4", "16Gi")));
            let maps: Api<ConfigMap> = Api::all(cluster.client("watcher"));
            tokio::spawn(async move {
                let events = maps.watch(&WatchParams::default().timeout(290), "0").await?;
                events.try_collect::<Vec<_>>().await
            });
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        let started = Instant::now();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let took = started.elapsed();
        Ok(Report::new(took)?.at_most("an idle hour", took.as_secs_f64() * 1000.0, "ms", 100.0))
    })?
}
