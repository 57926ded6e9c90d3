//! A sandbox cluster goes through what a real one went through.

use portolan_sandbox::{ClusterConfig, NodeConfig, World, WorldConfig};
use portolan_tests::conformance::compare;
use portolan_tests::sequences::{Ground, divergences, recording, run};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn deployments_jobs_drains_and_lost_nodes_go_through_what_they_do_on_a_real_cluster() {
    let world = World::new(WorldConfig::default());
    let cluster = world.add_cluster(ClusterConfig::named("c1").nodes(2, NodeConfig::new("4", "16Gi")));
    let on = cluster.clone();
    let ground = Ground {
        client: cluster.client("script"),
        nodes: ["c1-1".to_owned(), "c1-2".to_owned()],
        silence: Box::new(move |silent| {
            if silent {
                on.fail_node("c1-2")
            } else {
                on.restore_node("c1-2")
            }
            Box::pin(async { Ok(()) })
        }),
        quiet: Duration::from_millis(2500),
        limit: Duration::from_secs(120),
    };
    let ours = run(&ground).await.unwrap();
    let verdict = compare(&recording().unwrap(), &ours, &divergences().unwrap());
    println!("{} steps the same, {} known differences", verdict.same, verdict.known);
    let unknown: Vec<String> = verdict.unknown.iter().map(ToString::to_string).collect();
    assert!(unknown.is_empty(), "{} differences are not listed:\n{}", unknown.len(), unknown.join("\n"));
    assert!(verdict.gone.is_empty(), "listed, but no longer so:\n{}", verdict.gone.join("\n"));
}
