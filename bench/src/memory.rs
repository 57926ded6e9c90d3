//! The memory of the controllers alone: the clusters live in this process and are served on loopback, the controllers
//! in another.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use portolan_control::fleet::Credentials;
use portolan_runtime::{Clock, Seed, Term};
use portolan_sandbox::{NodeConfig, World, WorldConfig, kubeconfig};
use portolan_tests::simulation::{Fleet, apply};
use serde_json::json;

use crate::fleet::{create, ready};
use crate::measure::{Report, memory_mib};

const MEMBERS: usize = 100;
const REPLICAS: i32 = 10;
const LIMIT: Duration = Duration::from_secs(300);

/// Ends the other process, come what may.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Workloads of ten replicas each over a hundred clusters.
pub(crate) fn controller(count: usize) -> Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(count))
}

async fn measure(count: usize) -> Result<Report> {
    let world = World::new(WorldConfig { start: Timestamp::now(), ..WorldConfig::default() });
    let names: Vec<String> = (1..=MEMBERS).map(|number| format!("m{number}")).collect();
    let node = NodeConfig::new("64", "256Gi");
    let members: Vec<_> = names.iter().map(|name| (name.as_str(), 5, node.clone())).collect();
    let fleet = Fleet::new(world, &members).await;
    let user = fleet.hub.client("user");
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "portolan"}});
    apply(&user, &namespace).await;
    let mut served = Vec::new();
    for member in &fleet.members {
        let one = member.serve("controller", any_port).await?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": member.name(), "namespace": "portolan"},
            "stringData": {"kubeconfig": kubeconfig([&one]).to_string()},
        });
        apply(&user, &secret).await;
        served.push(one);
    }
    let hub = fleet.hub.serve("controller", any_port).await?;
    let file = std::env::temp_dir().join(format!("portolan-bench-{}", std::process::id()));
    std::fs::File::create(&file)?.write_all(kubeconfig([&hub]).to_string().as_bytes())?;
    let file_text = file.to_str().context("the path is text")?;
    let mut controller =
        Ended(Command::new(std::env::current_exe()?).args(["--controller", file_text]).spawn()?);
    let started = Instant::now();
    let spec = json!({"placementPolicy": "worst-fit", "numberOfLocations": 1});
    for number in 0..count {
        create(&user, &format!("w-{number}"), REPLICAS, spec.clone()).await?;
    }
    let mut most: f64 = 0.0;
    loop {
        ensure!(controller.0.try_wait()?.is_none(), "the controller has ended");
        most = most.max(memory_mib(controller.0.id())?);
        if ready(&user).await? == count {
            break;
        }
        ensure!(started.elapsed() < LIMIT, "not all {count} workloads are ready after {LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let settled = memory_mib(controller.0.id())?;
    let took = started.elapsed();
    drop(controller);
    std::fs::remove_file(&file)?;
    let pods: usize = fleet.members.iter().map(|member| member.count("", "pods")).sum();
    Ok(Report::new(took)?
        .figure("pods in 100 members", pods as f64, "")
        .figure("all ready, in status, after", took.as_secs_f64(), "s")
        .figure("memory of the controllers, settled", settled, "MiB")
        .at_most("memory of the controllers, most", most.max(settled), "MiB", 150.0))
}

/// The controllers alone, until they are ended.
pub(crate) fn run_controller(file: &str) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let config = Kubeconfig::read_from(file)?;
        let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        let connect = Arc::new(Credentials::from_hub(client.clone()));
        let clock = Clock::starting_at(Timestamp::now());
        portolan_control::run(client, connect, clock, Seed::new(1), Term::alone("bench")).await;
        Ok(())
    })
}
