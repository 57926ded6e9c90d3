//! The sandbox held against a real API server.

use super::can_run;
use anyhow::Result;
use portolan_lab::{Component, Lab};
use portolan_sandbox::{ClusterConfig, NodeConfig, World, WorldConfig};
use portolan_tests::conformance::{compare, divergences, run, script};
use serde_json::json;
use std::time::Duration;

/// Longer than the test lasts.
const NEVER: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread")]
async fn conformance_of_the_sandbox_with_a_real_api_server() -> Result<()> {
    if !can_run("conformance_of_the_sandbox_with_a_real_api_server") {
        return Ok(());
    }
    let scenarios = script();
    let lab = Lab::builder().clusters(1).start().await?;
    let cluster = lab.cluster("c1")?;
    // Only the API server is compared: nobody else may write.
    for component in [Component::ControllerManager, Component::Scheduler, Component::Kubelet] {
        cluster.stop(component).await?;
    }
    let client = cluster.client().await?;
    // The sandbox's node, for pods that are bound: there, too, nobody may run them.
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "c1-1"}});
    let request = http::Request::post("/api/v1/nodes").body(serde_json::to_vec(&node)?)?;
    client.request::<serde_json::Value>(request).await?;
    let real = run(&client, &scenarios).await?;

    let world = World::new(WorldConfig::default());
    let sandbox = world.add_cluster(
        ClusterConfig::named("c1").nodes(1, NodeConfig::new("4", "16Gi")).start_up(NEVER).shut_down(NEVER),
    );
    let ours = run(&sandbox.client("conformance"), &scenarios).await?;

    let verdict = compare(&real, &ours, &divergences()?);
    println!(
        "{} calls in {} scenarios: {} answered the same, {} known differences",
        real.len(),
        scenarios.len(),
        verdict.same,
        verdict.known
    );
    for difference in &verdict.unknown {
        println!("{difference}");
    }
    for gone in &verdict.gone {
        println!("no longer so: {gone}");
    }
    let (unknown, gone) = (verdict.unknown.len(), verdict.gone.len());
    assert!(unknown == 0 && gone == 0, "{unknown} differences are not listed, {gone} listed ones are gone");
    lab.down()
}
