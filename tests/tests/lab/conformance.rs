//! The sandbox held against a real API server.

use super::can_run;
use anyhow::Result;
use portolan_lab::{Component, Lab};
use portolan_tests::conformance::{add_node, compare, divergences, run, run_on_sandbox, script};

/// Names a file that keeps what the real API server answers: `cargo run -p portolan-tests --bin conformance FILE` holds
/// the sandbox against that, without a lab.
const KEEP: &str = "PORTOLAN_KEEP_ANSWERS";

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
    // It remembers nothing of what was before its start: watches from there must be told so.
    cluster.restart(Component::ApiServer).await?;
    let client = cluster.client().await?;
    add_node(&client).await?;
    let real = run(&client, &scenarios).await?;
    if let Some(kept) = std::env::var_os(KEEP) {
        std::fs::write(kept, serde_json::to_vec_pretty(&real)?)?;
    }

    let verdict = compare(&real, &run_on_sandbox(&scenarios).await?, &divergences()?);
    print!("{verdict}");
    let (unknown, gone) = (verdict.unknown.len(), verdict.gone.len());
    assert!(unknown == 0 && gone == 0, "{unknown} differences are not listed, {gone} listed ones are gone");
    lab.down()
}
