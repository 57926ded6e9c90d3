//! Clusters reach one another's API, until the link between them is cut.

use anyhow::{Result, ensure};
use portolan_lab::{Cluster, Lab, Seen};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use crate::support::{LIMIT, exec, exec_until};

/// What an API server says to anybody.
const VERSION: &str = "\"gitVersion\": \"v1.";

pub(crate) async fn prove_reachable(c1: &Cluster, c2: &Cluster) -> Result<()> {
    exec_until(c1, "client", &from_pod(c2), VERSION).await?;
    for (from, to) in [(c1, c2), (c2, c1)] {
        reaches(from, to).await?;
    }
    Ok(())
}

/// A server on the host, such as a controller under test, is reached from pods.
pub(crate) async fn prove_host_is_reachable(lab: &Lab) -> Result<()> {
    let listener = TcpListener::bind((lab.host_address()?, 0)).await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let answer = async {
        let (mut connection, _) = listener.accept().await?;
        connection.write_all(b"HTTP/1.0 200 OK\r\n\r\nfrom the host").await?;
        connection.shutdown().await?;
        Ok::<(), anyhow::Error>(())
    };
    let command = ["wget", "-q", "-T", "60", "-O", "-", &url];
    let ask = exec(lab.cluster("c1")?, "client", &command);
    let (_, said) = tokio::time::timeout(LIMIT, async { tokio::try_join!(answer, ask) }).await??;
    ensure!(said == "from the host", "{said:?}");
    Ok(())
}

pub(crate) async fn prove_cut_and_heal(lab: &Lab) -> Result<()> {
    let (c1, c2) = (lab.cluster("c1")?, lab.cluster("c2")?);
    lab.cut("c1", "c2").await?;
    let said = exec(c1, "client", &["/bin/sh", "-c", &from_pod(c2)]).await?;
    ensure!(!said.contains(VERSION), "a pod's packet passed the cut: {said}");
    for (from, to) in [(c1, c2), (c2, c1)] {
        let said = ask_from_node(from, to).await;
        ensure!(said.is_err(), "a node's packet passed the cut: {said:?}");
    }
    for cluster in [c1, c2] {
        let said = cluster.kubectl(&["version", "-o", "json"]).await?;
        ensure!(said.contains("serverVersion"), "the host lost {}: {said}", cluster.name());
    }
    // Inside a cluster nothing has changed.
    exec_until(c1, "client", "wget -q -T 2 -O - http://pair/", "pair").await?;
    lab.heal("c1", "c2").await?;
    exec_until(c1, "client", &from_pod(c2), VERSION).await?;
    reaches(c2, c1).await
}

/// Waits until the nodes of one cluster reach the other's API.
async fn reaches(from: &Cluster, to: &Cluster) -> Result<()> {
    let what = format!("node {} reaches the API of {}", from.control_plane().name(), to.name());
    from.wait_until(&what, LIMIT, async || {
        Ok(match ask_from_node(from, to).await {
            Ok(said) if said.contains(VERSION) => Seen::Ready(()),
            other => Seen::NotYet(format!("{other:?}")),
        })
    })
    .await
}

fn from_pod(to: &Cluster) -> String {
    format!("wget -q -T 2 -O - --no-check-certificate {}/version", to.api_server())
}

/// Asks with the other cluster's kubeconfig, as a controller does.
async fn ask_from_node(from: &Cluster, to: &Cluster) -> Result<String> {
    let node = from.control_plane();
    std::fs::copy(to.kubeconfig_path(), node.dir().join("other.kubeconfig"))?;
    node.exec(&[
        "kubectl",
        "--kubeconfig=/lab/other.kubeconfig",
        "--request-timeout=2s",
        "get",
        "--raw",
        "/version",
    ])
    .await
}
