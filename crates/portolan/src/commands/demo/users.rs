//! Users of the demo's shop, and what is measured of them in each cluster.

use super::fleet::{Fleet, NAMESPACE, apply, sites};
use crate::failure::Failure;
use portolan_sandbox::{Source, World};
use serde_json::json;
use std::time::Duration;

/// How often the traffic is told.
const TELL_EVERY: Duration = Duration::from_millis(500);

/// Lets users in a cluster send this many requests a second to the shop, wherever it runs.
pub(super) fn send(fleet: &Fleet, cluster: &str, per_second: u64) {
    let source = Source {
        cluster: cluster.to_owned(),
        namespace: NAMESPACE.to_owned(),
        service: "shop".to_owned(),
        requests_per_1000s: per_second * 1000,
    };
    fleet.world().send_traffic(cluster, source);
}

/// Tells for ever, on the Service in each cluster, what the users there send: the part of an agent in the member.
pub(super) async fn measure(world: World) -> Failure {
    loop {
        if let Err(failure) = tell_once(&world).await {
            return failure;
        }
        tokio::time::sleep(TELL_EVERY).await;
    }
}

/// Tells what the users of all clusters send now.
pub(super) async fn tell_once(world: &World) -> Result<(), Failure> {
    for (cluster, ..) in sites() {
        tell(world, cluster).await?;
    }
    Ok(())
}

async fn tell(world: &World, cluster: &str) -> Result<(), Failure> {
    let Some(member) = world.cluster(cluster) else { return Ok(()) };
    // Sources are named after the cluster that they are in.
    let flows = world.traffic();
    let sent = flows.iter().filter(|flow| flow.source == cluster).map(|flow| flow.requests_per_1000s);
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "shop",
            "namespace": NAMESPACE,
            "labels": {"portolan.dev/traffic": "told"},
            "annotations": {
                "io.cilium/global-service": "true",
                "portolan.dev/requests-per-second": format!("{}m", sent.sum::<u64>()),
                "portolan.dev/traffic-measured-at": world.clock().now().to_string(),
            },
        },
        "spec": {"selector": {"app": "shop"}, "ports": [{"port": 80}]},
    });
    apply(&member.client("agent"), &service).await
}
