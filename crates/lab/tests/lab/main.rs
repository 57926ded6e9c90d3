//! The lab proves itself: real clusters, real pods, real packets, and nothing left behind.
//!
//! Few labs serve all proofs, because starting one takes longer than most of them; the names of the steps tell where one
//! fails.

mod checkpoint;
mod components;
mod leftovers;
mod links;
mod pods;
mod services;
mod simulated;
mod support;

use anyhow::Result;
use portolan_lab::{Component, Lab};

use leftovers::Snapshot;
use support::{can_run, step};

/// Two clusters that use the same addresses for their pods.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_clusters() -> Result<()> {
    if !can_run() {
        return Ok(());
    }
    let before = Snapshot::take()?;
    let lab = Lab::builder().clusters(2).pod_cidrs(["10.10.0.0/16".parse()?]).start().await?;
    let (c1, c2) = (lab.cluster("c1")?, lab.cluster("c2")?);
    eprintln!("two clusters were ready after {:.1} s", lab.took().as_secs_f64());

    step("pods run, logs and exec work", pods::prove(c1)).await?;
    step("an image from a static program runs", pods::prove_loaded_image(&lab)).await?;
    step("services and DNS answer", services::prove(c1)).await?;
    step("each API is reached from the other cluster", links::prove_reachable(c1, c2)).await?;
    step("the host is reached from a pod", links::prove_host_is_reachable(&lab)).await?;
    step("the kubelet's checkpoint yields an archive", checkpoint::prove(c1)).await?;
    step("killed components lose nothing", components::prove(c1)).await?;
    step("the link is cut and healed", links::prove_cut_and_heal(&lab)).await?;

    let lived = before.of_lab(&lab)?;
    lab.down()?;
    step("nothing is left behind", async { lived.assert_gone() }).await
}

/// One cluster of two real and some simulated nodes, whose maker dies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_and_a_crash() -> Result<()> {
    if !can_run() {
        return Ok(());
    }
    let before = Snapshot::take()?;
    let lab = Lab::builder().nodes(2).kwok(3).service_cidrs(["172.20.0.0/20".parse()?]).start().await?;
    let c1 = lab.cluster("c1")?;

    step("pods of two nodes reach one another", Box::pin(services::prove_across_nodes(c1))).await?;
    step("simulated nodes take pods", simulated::prove(c1, 2)).await?;
    step("a node that loses its power comes back", components::prove_power_cycle(c1)).await?;

    let lived = before.of_lab(&lab)?;
    let name = lab.name().to_owned();
    step("a crash leaves processes and files", async { leftovers::crash(lab) }).await?;
    step("the next lab clears them away", async {
        portolan_lab::sweep()?;
        anyhow::ensure!(!portolan_lab::state::names()?.contains(&name), "lab {name} is still listed");
        lived.assert_gone()
    })
    .await
}

/// A cluster of simulated nodes alone takes pods, and has nothing that they do not need.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simulated_nodes_alone() -> Result<()> {
    if !can_run() {
        return Ok(());
    }
    let lab = Lab::builder().kwok(3).only_simulated().start().await?;
    let c1 = lab.cluster("c1")?;
    step("simulated nodes take pods", simulated::prove(c1, 0)).await?;
    let refused = c1.stop(Component::Kubelet).await.err().map(|error| error.to_string());
    anyhow::ensure!(refused.as_deref().is_some_and(|why| why.contains("are simulated")), "{refused:?}");
    lab.down()
}

/// A lab of a name that is taken is refused and leaves the one that has it alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals() -> Result<()> {
    if !can_run() {
        return Ok(());
    }
    let root = portolan_lab::state::root()?;
    for (builder, reason) in [
        (Lab::builder().name("No"), "is not a name for a lab"),
        (Lab::builder().clusters(0), "1 to 63 clusters"),
        (Lab::builder().kubernetes("1.2"), "1.2"),
    ] {
        let refused = builder.start().await.err().map(|error| format!("{error:#}"));
        anyhow::ensure!(
            refused.as_ref().is_some_and(|error| error.contains(reason)),
            "{reason}: {refused:?}"
        );
    }
    anyhow::ensure!(!root.join("No").exists());
    let unknown = Lab::attach("no-such-lab").err().map(|error| error.to_string());
    anyhow::ensure!(unknown.as_ref().is_some_and(|error| error.contains("no lab named")), "{unknown:?}");
    Ok(())
}
