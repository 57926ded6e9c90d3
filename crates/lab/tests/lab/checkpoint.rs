//! The kubelet writes a checkpoint of a running container, which goes on running.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use portolan_lab::Cluster;

pub(crate) async fn prove(cluster: &Cluster) -> Result<()> {
    let client = cluster.client().await?;
    let node = cluster.control_plane();
    let path = format!("/api/v1/nodes/{}/proxy/checkpoint/default/pair/counter", node.name());
    let answer = client.request_text(http::Request::post(path).body(Vec::new())?).await?;
    let answer: serde_json::Value = serde_json::from_str(&answer).with_context(|| answer.clone())?;
    let archive = answer["items"][0].as_str().with_context(|| format!("no archive in {answer}"))?;

    let file = std::fs::File::open(node.path(archive)?).with_context(|| format!("cannot open {archive}"))?;
    let mut names = BTreeSet::new();
    for entry in tar::Archive::new(file).entries()? {
        names.insert(entry?.path()?.to_string_lossy().into_owned());
    }
    for wanted in ["spec.dump", "config.dump"] {
        ensure!(names.contains(wanted), "{wanted} is not in the archive, which holds {names:?}");
    }
    ensure!(
        names.iter().any(|name| name.contains("pages-")),
        "no memory in the archive, which holds {names:?}"
    );

    let pods: Api<Pod> = Api::default_namespaced(client);
    let statuses =
        pods.get("pair").await?.status.and_then(|status| status.container_statuses).unwrap_or_default();
    ensure!(
        statuses.iter().all(|status| status.ready && status.restart_count == 0),
        "after the checkpoint: {statuses:?}"
    );
    Ok(())
}
