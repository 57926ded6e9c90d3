//! kwok's nodes are Ready beside real ones and run pods that tolerate them, and no others.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use portolan_lab::Cluster;
use serde_json::json;

use crate::support::run_pod;

/// Of a cluster with three simulated nodes, and some real ones.
pub(crate) async fn prove(cluster: &Cluster, real: usize) -> Result<()> {
    let nodes: Api<Node> = Api::all(cluster.client().await?);
    let simulated = nodes.list(&ListParams::default().labels("type=kwok")).await?.items.len();
    let all = nodes.list(&ListParams::default()).await?.items.len();
    ensure!((simulated, all) == (3, 3 + real), "{simulated} of {all} nodes are simulated");

    let spec = json!({
        "nodeSelector": { "type": "kwok" },
        "tolerations": [{ "key": "kwok.x-k8s.io/node", "operator": "Exists" }],
    });
    let pod = run_pod(cluster, "simulated", spec, &[("nothing", "exit 1")]).await?;
    let node = pod.spec.and_then(|spec| spec.node_name).unwrap_or_default();
    ensure!(node.starts_with("c1-kwok-"), "it runs on {node:?}");

    let pods: Api<Pod> = Api::namespaced(cluster.client().await?, "kube-system");
    for pod in pods.list(&ListParams::default()).await? {
        let node = pod.spec.and_then(|spec| spec.node_name).unwrap_or_default();
        ensure!(!node.contains("kwok"), "{:?} landed on {node}", pod.metadata.name);
    }
    Ok(())
}
