//! A pod of two containers runs; its logs can be read and commands run in it, through the API and through kubectl.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};
use portolan_image::Image;
use portolan_lab::{Cluster, Lab, Seen};
use serde_json::json;

use crate::support::{LIMIT, exec, run_pod};

/// Serves its own name and logs who asks for it, and counts aloud.
pub(crate) const PAIR: [(&str, &str); 2] = [
    ("web", "mkdir -p /www && hostname >/www/index.html && exec httpd -f -v -p 8080 -h /www"),
    ("counter", "i=0; while :; do i=$((i+1)); echo count $i; sleep 0.2; done"),
];

pub(crate) async fn prove(cluster: &Cluster) -> Result<()> {
    let pod = run_pod(cluster, "pair", json!({}), &PAIR).await?;
    let statuses = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
    ensure!(statuses.len() == 2 && statuses.iter().all(|status| status.ready), "{statuses:?}");

    let pods: Api<Pod> = Api::default_namespaced(cluster.client().await?);
    let counter = LogParams { container: Some("counter".to_owned()), ..LogParams::default() };
    cluster
        .wait_until("the counter counts aloud", LIMIT, async || {
            let log = pods.logs("pair", &counter).await?;
            Ok(if log.contains("count 3\n") { Seen::Ready(()) } else { Seen::NotYet(log) })
        })
        .await?;
    let log = cluster.kubectl(&["logs", "pair", "-c", "counter", "--tail=1"]).await?;
    ensure!(log.starts_with("count "), "kubectl logs: {log:?}");

    let said = exec(cluster, "pair", &["hostname"]).await?;
    ensure!(said == "pair\n", "exec through the API: {said:?}");
    let said = cluster.kubectl(&["exec", "pair", "-c", "web", "--", "cat", "/www/index.html"]).await?;
    ensure!(said == "pair\n", "kubectl exec: {said:?}");
    Ok(())
}

/// An image made of a static program on this machine is loaded into all clusters and runs, without any registry.
pub(crate) async fn prove_loaded_image(lab: &Lab) -> Result<()> {
    let name = "portolan.test/loaded:1";
    let shell = lab.state().root.join("usr/bin/busybox");
    let idle = ["/bin/sh", "-c", "while :; do sleep 1; done"];
    let image =
        Image::new(name)?.static_binary("/bin/sh", &shell)?.symlink("/bin/sleep", "sh")?.entrypoint(idle);
    let dir = tempfile::tempdir()?;
    let archive = dir.path().join("loaded.tar");
    image.write_tar(&archive)?;
    lab.load_image(&archive).await?;
    for cluster in lab.clusters() {
        cluster.kubectl(&["run", "loaded", "--image", name, "--image-pull-policy", "Never"]).await?;
        cluster.wait_for_pod("default", "loaded", LIMIT).await?;
    }
    Ok(())
}
