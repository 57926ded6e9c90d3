//! Portolan on real Kubernetes with simulated nodes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client};
use portolan_control::fleet::Credentials;
use portolan_lab::{Cluster, Lab};
use portolan_runtime::{Clock, Seed, Term};
use portolan_tests::{NAMESPACE, foreign_cluster, open_namespace};
use serde_json::{Value, json};

use crate::fleet::create;
use crate::measure::Report;

const MEMBERS: u32 = 5;
const KWOK_NODES: u32 = 10;
const LIMIT: Duration = Duration::from_secs(300);
const AT_ONCE: usize = 32;
/// How often it is looked: what is measured must not be the looking.
const SELDOM: Duration = Duration::from_millis(500);
const OFTEN: Duration = Duration::from_millis(20);

fn run<F: Future<Output = Result<Report>>>(future: F) -> Result<Report> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(future)
}

/// Workloads of two replicas, created at once on five real clusters; the first is also the hub.
pub(crate) fn burst(count: usize) -> Result<Report> {
    run(async move {
        let lab = Lab::builder()
            .clusters(MEMBERS)
            .kwok(KWOK_NODES.max(u32::try_from(count / 250)?))
            .only_simulated()
            .start()
            .await?;
        let (hub, members) = install(&lab).await?;
        let started = Instant::now();
        let spec =
            on_simulated(json!({"placementPolicy": "worst-fit", "numberOfLocations": 1}), "10m", "16Mi");
        let names = (0..count).map(|number| format!("w-{number}"));
        futures::stream::iter(names)
            .map(|name| {
                let (hub, spec) = (hub.clone(), spec.clone());
                async move { create(&hub, &name, 2, spec).await }
            })
            .buffer_unordered(AT_ONCE)
            .try_collect::<Vec<_>>()
            .await?;
        let created = started.elapsed();
        let placed = until(started, SELDOM, async || Ok(deployments(&members).await? >= count)).await?;
        let running = until(started, 2 * SELDOM, async || Ok(running(&members).await? >= 2 * count)).await?;
        lab.down()?;
        Ok(Report::new(placed)?
            .figure("created in", created.as_secs_f64(), "s")
            .at_most("Deployments in 5 members", placed.as_secs_f64(), "s", 60.0)
            .figure("pods running", running.as_secs_f64(), "s")
            .figure("Karmada on such a machine", 457.0, "s"))
    })
}

/// The paper's Table IV: seconds until an application of 1, 10 and 100 replicas is deployed.
pub(crate) fn table(_: usize) -> Result<Report> {
    // Replicas, traffic-aware with bursting, cluster affinity with bursting.
    const PAPER: [(i32, f64, f64); 3] = [(1, 8.63, 1.88), (10, 8.67, 1.78), (100, 9.71, 11.53)];
    run(async move {
        let lab = Lab::builder().clusters(MEMBERS).kwok(4).only_simulated().start().await?;
        let (hub, members) = install(&lab).await?;
        let begun = Instant::now();
        let mut lines = Vec::new();
        for (replicas, traffic_aware, affinity) in PAPER {
            let policies = [
                (
                    "traffic-aware",
                    json!({"placementPolicy": "traffic-aware", "numberOfLocations": 1}),
                    traffic_aware,
                ),
                ("cluster-affinity", json!({"locations": ["c2"]}), affinity),
            ];
            for (policy, mut spec, paper) in policies {
                spec["enableBursting"] = json!(true);
                spec["burstingPolicy"] = json!("nearest-first");
                tell_traffic(&members).await;
                let before = running(&members).await?;
                let name = format!("{policy}-{replicas}");
                let started = create(&hub, &name, replicas, on_simulated(spec, "500m", "512Mi")).await?;
                let wanted = before + usize::try_from(replicas)?;
                let took = until(started, OFTEN, async || Ok(running(&members).await? >= wanted)).await?;
                lines.push((format!("{policy}, {replicas} replicas (paper: {paper} s)"), took));
            }
        }
        lab.down()?;
        let report = Report::new(begun.elapsed())?;
        Ok(lines.iter().fold(report, |report, (what, took)| report.figure(what, took.as_secs_f64(), "s")))
    })
}

/// What an administrator does, and the controllers; clients of the hub and of the members.
async fn install(lab: &Lab) -> Result<(Client, Vec<Client>)> {
    let hub = lab.cluster("c1")?;
    let crds = portolan_api::crds().iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
    let client = hub.client().await?;
    for crd in crds {
        portolan_tests::simulation::apply(&client, &crd).await;
    }
    hub.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]).await?;
    hub.kubectl(&["create", "namespace", "portolan"]).await?;
    let mut members = Vec::new();
    for number in 1..=MEMBERS {
        let member = lab.cluster(&format!("c{number}"))?;
        let own = member.client().await?;
        portolan_tests::simulation::apply(&own, &open_namespace()).await;
        members.push(own);
        make_known(hub, member, &client).await?;
    }
    let connect = Arc::new(Credentials::from_hub(client.clone()));
    let clock = Clock::starting_at(Timestamp::now());
    tokio::spawn(portolan_control::run(client.clone(), connect, clock, Seed::new(1), Term::alone("bench")));
    hub.kubectl(&["wait", "--for=condition=Ready", "foreigncluster", "--all", "--timeout=60s"]).await?;
    Ok((client, members))
}

async fn make_known(hub: &Cluster, member: &Cluster, client: &Client) -> Result<()> {
    let path = member.kubeconfig_path();
    let path = path.to_str().context("the kubeconfig's path is text")?;
    let from = format!("--from-file=kubeconfig={path}");
    hub.kubectl(&["-n", "portolan", "create", "secret", "generic", member.name(), &from]).await?;
    portolan_tests::simulation::apply(client, &foreign_cluster(member.name())).await;
    Ok(())
}

/// What somebody who measures in each member would write: users near the second one send the most.
async fn tell_traffic(members: &[Client]) {
    for (number, member) in members.iter().enumerate() {
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {
                "name": "bench", "namespace": NAMESPACE,
                "labels": {"portolan.dev/traffic": "told"},
                "annotations": {
                    "portolan.dev/requests-per-second": if number == 1 { "50" } else { "5" },
                    "portolan.dev/traffic-measured-at": Timestamp::now().to_string(),
                },
            },
            "spec": {"selector": {"app": "bench"}, "ports": [{"port": 80}]},
        });
        portolan_tests::simulation::apply(member, &service).await;
    }
}

/// Adds a template for pods on simulated nodes.
fn on_simulated(mut spec: Value, cpu: &str, memory: &str) -> Value {
    spec["selector"] = json!({"matchLabels": {"app": "bench"}});
    spec["template"] = json!({
        "metadata": {"labels": {"app": "bench"}},
        "spec": {
            "nodeSelector": {"type": "kwok"},
            "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "main", "image": "simulated:1", "resources": {"requests": {"cpu": cpu, "memory": memory}},
            }],
        },
    });
    spec
}

/// How many Deployments there are: one of them is read, the others are counted, so that to look costs next to nothing.
async fn deployments(members: &[Client]) -> Result<usize> {
    let mut found = 0;
    for member in members {
        let deployments: Api<Deployment> = Api::namespaced(member.clone(), NAMESPACE);
        let page = deployments.list_metadata(&ListParams::default().limit(1)).await?;
        let more = page.metadata.remaining_item_count.unwrap_or(0);
        found += page.items.len() + usize::try_from(more)?;
    }
    Ok(found)
}

async fn running(members: &[Client]) -> Result<usize> {
    let mut found = 0;
    for member in members {
        let pods: Api<Pod> = Api::namespaced(member.clone(), NAMESPACE);
        let select = ListParams::default().fields("status.phase=Running");
        found += pods.list_metadata(&select).await?.items.len();
    }
    Ok(found)
}

async fn until(
    started: Instant,
    pause: Duration,
    mut look: impl AsyncFnMut() -> Result<bool>,
) -> Result<Duration> {
    while !look().await? {
        if started.elapsed() > LIMIT {
            bail!("not all is there after {LIMIT:?}");
        }
        tokio::time::sleep(pause).await;
    }
    Ok(started.elapsed())
}
