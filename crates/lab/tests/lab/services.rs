//! Services answer under their address and their name, and pods of different nodes see each other's own addresses.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{Api, LogParams, PostParams};
use portolan_lab::{Cluster, Seen};
use serde_json::json;

use crate::pods::PAIR;
use crate::support::{LIMIT, exec_until, run_pod};

/// Stays up so that commands can be run in it.
const IDLE: [(&str, &str); 1] = [("idle", "while :; do sleep 1; done")];

pub(crate) async fn prove(cluster: &Cluster) -> Result<()> {
    let address = expose(cluster, "pair").await?;
    run_pod(cluster, "client", json!({}), &IDLE).await?;
    exec_until(cluster, "client", &format!("wget -q -T 2 -O - http://{address}/"), "pair").await?;
    for name in ["pair", "pair.default", "pair.default.svc.cluster.local"] {
        exec_until(cluster, "client", &format!("wget -q -T 2 -O - http://{name}/"), "pair").await?;
    }
    exec_until(cluster, "client", "nslookup kubernetes.default.svc.cluster.local", &first_address(cluster)?)
        .await?;
    // A pod behind the service reaches itself through it.
    exec_until(cluster, "pair", "wget -q -T 2 -O - http://pair.default/", "pair").await?;
    let from_node = cluster.control_plane().exec(&["bash", "-c", &http_get(&address)]).await?;
    ensure!(from_node.contains("pair"), "from the node: {from_node:?}");
    Ok(())
}

pub(crate) async fn prove_across_nodes(cluster: &Cluster) -> Result<()> {
    let [first, second] = cluster.nodes() else { anyhow::bail!("not two nodes") };
    let server = run_pod(cluster, "pair", json!({ "nodeName": second.name() }), &PAIR).await?;
    let client = run_pod(cluster, "client", json!({ "nodeName": first.name() }), &IDLE).await?;
    let (server, client) = (address_of(&server)?, address_of(&client)?);
    exec_until(cluster, "client", &format!("wget -q -T 2 -O - http://{server}:8080/"), "pair").await?;
    let service = expose(cluster, "pair").await?;
    exec_until(cluster, "client", &format!("wget -q -T 2 -O - http://{service}/"), "pair").await?;

    // Seen by the server, the client has its own address and not its node's.
    let pods: Api<Pod> = Api::default_namespaced(cluster.client().await?);
    let log = LogParams { container: Some("web".to_owned()), ..LogParams::default() };
    let log = cluster
        .wait_until(&format!("a request of {client} is in the log"), LIMIT, async || {
            let log = pods.logs("pair", &log).await?;
            Ok(if log.contains(&client) { Seen::Ready(log) } else { Seen::NotYet(log) })
        })
        .await?;
    ensure!(!log.contains(&first.address().to_string()), "a request came from the node: {log:?}");
    Ok(())
}

/// Makes a service of port 80 for the pods of this name; returns its address.
async fn expose(cluster: &Cluster, app: &str) -> Result<String> {
    let services: Api<Service> = Api::default_namespaced(cluster.client().await?);
    let service = serde_json::from_value(json!({
        "metadata": { "name": app },
        "spec": { "selector": { "app": app }, "ports": [{ "port": 80, "targetPort": 8080 }] },
    }))?;
    let made = services.create(&PostParams::default(), &service).await?;
    made.spec.and_then(|spec| spec.cluster_ip).context("a service without address")
}

fn address_of(pod: &Pod) -> Result<String> {
    pod.status.as_ref().and_then(|status| status.pod_ip.clone()).context("a Ready pod without address")
}

fn first_address(cluster: &Cluster) -> Result<String> {
    Ok(cluster.state().services.address(1)?.to_string())
}

fn http_get(address: &str) -> String {
    format!("exec 3<>/dev/tcp/{address}/80; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3")
}
