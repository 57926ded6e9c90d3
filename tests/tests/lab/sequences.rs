//! What a real cluster goes through: the recording that the sandbox is held against is true.

use super::can_run;
use anyhow::Result;
use portolan_lab::{Component, Lab};
use portolan_tests::conformance::compare;
use portolan_tests::sequences::{Ground, recording, recording_file, run};
use std::sync::Arc;
use std::time::Duration;

/// How long a node may be silent in this test.
const SILENCE: u32 = 6;
/// Set this to write the recording anew.
const RECORD: &str = "PORTOLAN_RECORD";

#[tokio::test(flavor = "multi_thread")]
async fn the_recorded_sequences_of_states_are_those_of_a_real_cluster() -> Result<()> {
    if !can_run("the_recorded_sequences_of_states_are_those_of_a_real_cluster") {
        return Ok(());
    }
    let lab = Lab::builder().clusters(1).nodes(2).silence(SILENCE).start().await?;
    let cluster = Arc::new(lab.cluster("c1")?.clone());
    let nodes = [cluster.nodes()[0].name().to_owned(), cluster.nodes()[1].name().to_owned()];
    let (second, on) = (nodes[1].clone(), cluster.clone());
    let ground = Ground {
        client: cluster.client().await?,
        nodes,
        silence: Box::new(move |silent| {
            let (node, cluster) = (second.clone(), on.clone());
            Box::pin(async move {
                if silent {
                    cluster.kill_on(&node, Component::Kubelet).await
                } else {
                    cluster.start_on(&node, Component::Kubelet).await
                }
            })
        }),
        quiet: Duration::from_millis(2500),
        limit: Duration::from_secs(300),
    };
    let started = std::time::Instant::now();
    let real = run(&ground).await?;
    println!("{} steps on a real cluster in {:.1} s", real.len(), started.elapsed().as_secs_f64());
    if std::env::var_os(RECORD).is_some() {
        std::fs::write(recording_file(), serde_json::to_string_pretty(&real)? + "\n")?;
    } else {
        let verdict = compare(&real, &recording()?, &[]);
        let found: Vec<String> = verdict.unknown.iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "not as recorded ({RECORD}=1 records anew):\n{}", found.join("\n"));
    }
    lab.down()
}
