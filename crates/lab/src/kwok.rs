//! Simulated nodes beside the real ones.
//!
//! They are tainted like kwok's own examples, so that no pod which is to run in earnest lands on one: a pod for them
//! tolerates `kwok.x-k8s.io/node=fake:NoSchedule`, and selects `type: kwok` if it must not run elsewhere.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use serde_json::json;
use std::time::Duration;

use crate::wait::{Seen, until};

const KEY: &str = "kwok.x-k8s.io/node";
const VALUE: &str = "fake";

/// Selects the nodes that kwok simulates.
pub(crate) const ANNOTATION: &str = "kwok.x-k8s.io/node=fake";

/// Creates `count` simulated nodes `CLUSTER-kwok-1` and so on, of 32 CPUs, 256 GiB and 110 pods each.
pub(crate) async fn create_nodes(client: &Client, cluster: &str, count: u32) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    for number in 1..=count {
        let name = format!("{cluster}-kwok-{number}");
        let room = json!({ "cpu": "32", "memory": "256Gi", "pods": "110" });
        let node = serde_json::from_value(json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "annotations": { KEY: VALUE, "node.alpha.kubernetes.io/ttl": "0" },
                "labels": {
                    "type": "kwok",
                    "kubernetes.io/hostname": name,
                    "kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                    "kubernetes.io/role": "agent",
                },
            },
            "spec": { "taints": [{ "key": KEY, "value": VALUE, "effect": "NoSchedule" }] },
            "status": { "allocatable": room, "capacity": room, "phase": "Running" },
        }))?;
        nodes
            .create(&PostParams::default(), &node)
            .await
            .with_context(|| format!("cannot create simulated node {name}"))?;
    }
    Ok(())
}

/// Waits until all simulated nodes are Ready.
pub(crate) async fn wait_until_ready(
    client: &Client,
    cluster: &str,
    count: u32,
    limit: Duration,
) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let selected = ListParams::default().labels("type=kwok");
    let what = format!("the {count} simulated nodes of cluster {cluster} are Ready");
    until(&what, limit, Duration::from_millis(200), async || {
        let ready = nodes.list(&selected).await?.into_iter().filter(is_ready).count();
        Ok(if ready >= count as usize { Seen::Ready(()) } else { Seen::NotYet(format!("{ready} are Ready")) })
    })
    .await
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
