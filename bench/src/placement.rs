//! Portolan's controllers on sandbox clusters, on the real clock.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::ForeignCluster;
use portolan_sandbox::NodeConfig;
use serde_json::{Value, json};

use crate::fleet::{Stage, ready};
use crate::measure::{Report, quantile_ms};

const MEMBERS: usize = 5;
/// How many requests the user has under way at once.
const AT_ONCE: usize = 64;

fn run<F: Future<Output = Result<Report>>>(future: F) -> Result<Report> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(future)
}

fn worst_fit() -> Value {
    json!({"placementPolicy": "worst-fit", "numberOfLocations": 1})
}

/// Nodes with room for this many small pods in each of the members.
async fn stage(members: usize, pods: usize) -> Result<Stage> {
    let nodes = pods.div_ceil(100).max(5);
    Stage::open(members, nodes, NodeConfig::new("64", "256Gi")).await
}

/// Workloads of two replicas, created at once.
pub(crate) fn burst(count: usize) -> Result<Report> {
    run(async move {
        let stage = stage(MEMBERS, count * 2).await?;
        let started = Instant::now();
        create_all(&stage, count, 2, &worst_fit()).await?;
        let created = started.elapsed();
        stage
            .until("all are in the members", async || {
                Ok(stage.in_members("apps", "deployments") == count
                    && stage.in_members("", "pods") == 2 * count)
            })
            .await?;
        let placed = started.elapsed();
        let user = stage.user();
        stage.until("all are ready", async || slowly(ready(&user)).await.map(|ready| ready == count)).await?;
        Ok(Report::new(placed)?
            .figure("created in", created.as_secs_f64(), "s")
            .at_most("Deployments and pods in 5 members", placed.as_secs_f64(), "s", 20.0)
            .figure("all ready, in status", started.elapsed().as_secs_f64(), "s"))
    })
}

/// Workloads of two replicas, one after the other.
pub(crate) fn one(count: usize) -> Result<Report> {
    run(async move {
        let stage = stage(MEMBERS, count * 2).await?;
        stage.note_arrivals();
        let started = Instant::now();
        let mut times = Vec::with_capacity(count);
        for number in 0..count {
            let name = format!("w-{number}");
            let created = stage.create(&name, 2, worst_fit()).await?;
            stage.until("it is in a member", async || Ok(stage.arrival(&name).is_some())).await?;
            times.extend(stage.arrival(&name).map(|arrived| arrived.duration_since(created)));
        }
        Ok(Report::new(started.elapsed())?
            .at_most("create to member, p50", quantile_ms(&mut times, 0.5), "ms", 100.0)
            .figure("create to member, p99", quantile_ms(&mut times, 0.99), "ms"))
    })
}

/// Twenty workloads a second.
pub(crate) fn steady(count: usize) -> Result<Report> {
    run(async move {
        let stage = stage(MEMBERS, count * 2).await?;
        stage.note_arrivals();
        let started = Instant::now();
        let mut ticks = tokio::time::interval(Duration::from_millis(50));
        let mut created = Vec::with_capacity(count);
        for number in 0..count {
            ticks.tick().await;
            let name = format!("w-{number}");
            let at = stage.create(&name, 2, worst_fit()).await?;
            created.push((name, at));
        }
        stage
            .until("all are in members", async || {
                Ok(created.iter().all(|(name, _)| stage.arrival(name).is_some()))
            })
            .await?;
        let arrived = created.iter().filter_map(|(name, at)| Some(stage.arrival(name)?.duration_since(*at)));
        let mut times: Vec<Duration> = arrived.collect();
        Ok(Report::new(started.elapsed())?
            .figure("create to member, p50", quantile_ms(&mut times, 0.5), "ms")
            .at_most("create to member, p99", quantile_ms(&mut times, 0.99), "ms", 300.0))
    })
}

/// A cluster that all workloads select gets another label: all move.
pub(crate) fn relabel(count: usize) -> Result<Report> {
    run(async move {
        let stage = stage(2, count * 2).await?;
        label(&stage, "m1", "a").await?;
        label(&stage, "m2", "b").await?;
        let spec = json!({
            "placementPolicy": "worst-fit", "numberOfLocations": 1,
            "clusterSelector": {"matchLabels": {"tier": "a"}},
        });
        let started = Instant::now();
        create_all(&stage, count, 1, &spec).await?;
        let [first, second] = stage.fleet.members.as_slice() else { anyhow::bail!("there are two members") };
        let user = stage.user();
        stage
            .until("all are placed and ready", async || {
                Ok(first.count("apps", "deployments") == count && slowly(ready(&user)).await? == count)
            })
            .await?;
        let placed = started.elapsed();
        let started = Instant::now();
        label(&stage, "m2", "a").await?;
        label(&stage, "m1", "b").await?;
        stage
            .until("all have moved", async || {
                let moved =
                    second.count("apps", "deployments") == count && first.count("apps", "deployments") == 0;
                tokio::time::sleep(Duration::from_millis(50)).await;
                Ok(moved)
            })
            .await?;
        let moved = started.elapsed();
        Ok(Report::new(moved)?.figure("placed and ready in", placed.as_secs_f64(), "s").at_most(
            "moved to the other cluster in",
            moved.as_secs_f64(),
            "s",
            60.0,
        ))
    })
}

async fn create_all(stage: &Stage, count: usize, replicas: i32, spec: &Value) -> Result<()> {
    let requests = (0..count).map(|number| stage_create(stage, number, replicas, spec.clone()));
    futures::stream::iter(requests).buffer_unordered(AT_ONCE).try_collect::<Vec<_>>().await?;
    Ok(())
}

async fn stage_create(stage: &Stage, number: usize, replicas: i32, spec: Value) -> Result<Instant> {
    stage.create(&format!("w-{number}"), replicas, spec).await
}

async fn label(stage: &Stage, cluster: &str, tier: &str) -> Result<()> {
    let clusters: Api<ForeignCluster> = Api::all(stage.user());
    let change = json!({"metadata": {"labels": {"tier": tier}}});
    clusters
        .patch(cluster, &PatchParams::default(), &Patch::Merge(change))
        .await
        .with_context(|| format!("label of {cluster}"))?;
    Ok(())
}

/// Listing thousands of workloads must not be what takes the time.
async fn slowly<T>(look: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::sleep(Duration::from_millis(500)).await;
    look.await
}
