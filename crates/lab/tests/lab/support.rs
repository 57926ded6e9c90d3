//! What the proofs share.

use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, AttachParams, PostParams};
use portolan_lab::{Cluster, Seen};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

/// How long anything in a lab may take on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(300);

/// Whether labs can run here. Skipping is loud, and forbidden in continuous integration.
pub(crate) fn can_run() -> bool {
    let root = nix::unistd::geteuid().is_root();
    assert!(root || std::env::var_os("CI").is_none(), "the proofs of the lab must run in CI, and need root");
    if !root {
        // Not eprintln: what a passing test prints with it is never shown.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: the proofs of the lab need root; run `sudo -E cargo test -p portolan-lab`"
        );
    }
    root
}

/// Runs one proof and says how long it took.
pub(crate) async fn step<T>(what: &str, proof: impl Future<Output = Result<T>>) -> Result<T> {
    let started = Instant::now();
    let done = proof.await.with_context(|| what.to_owned())?;
    eprintln!("{what}: {:.1} s", started.elapsed().as_secs_f64());
    Ok(done)
}

/// Creates a pod of busybox containers, each running a shell script, and waits until it is Ready.
pub(crate) async fn run_pod(
    cluster: &Cluster,
    name: &str,
    spec: Value,
    scripts: &[(&str, &str)],
) -> Result<Pod> {
    let mut spec = spec;
    spec["terminationGracePeriodSeconds"] = json!(0);
    let container = |(name, script): &(&str, &str)| {
        json!({
            "name": name,
            "image": portolan_lab::parts::BUSYBOX_IMAGE,
            "imagePullPolicy": "Never",
            "command": ["/bin/sh", "-c", script],
        })
    };
    spec["containers"] = scripts.iter().map(container).collect();
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "labels": { "app": name } },
        "spec": spec,
    });
    let pods: Api<Pod> = Api::default_namespaced(cluster.client().await?);
    let pod = serde_json::from_value(pod)?;
    Box::pin(pods.create(&PostParams::default(), &pod)).await?;
    cluster.wait_for_pod("default", name, LIMIT).await
}

/// Runs a command in the first container of a pod and returns what it printed on both streams.
pub(crate) async fn exec(cluster: &Cluster, pod: &str, command: &[&str]) -> Result<String> {
    let pods: Api<Pod> = Api::default_namespaced(cluster.client().await?);
    let containers = pods.get(pod).await?.spec.map(|spec| spec.containers).unwrap_or_default();
    let first = containers.first().with_context(|| format!("pod {pod} has no containers"))?;
    let params = AttachParams::default().stderr(true).container(&first.name);
    let mut attached = pods.exec(pod, command.iter().copied(), &params).await?;
    let (mut stdout, mut stderr) = (
        attached.stdout().context("exec without standard output")?,
        attached.stderr().context("exec without standard error")?,
    );
    let (mut printed, mut complained) = (String::new(), String::new());
    tokio::try_join!(stdout.read_to_string(&mut printed), stderr.read_to_string(&mut complained))?;
    Ok(printed + &complained)
}

/// Runs a shell script in a pod until it prints what is wanted.
pub(crate) async fn exec_until(cluster: &Cluster, pod: &str, script: &str, wanted: &str) -> Result<()> {
    let what = format!("`{script}` in pod {pod} prints {wanted:?}");
    cluster
        .wait_until(&what, LIMIT, async || {
            Ok(match exec(cluster, pod, &["/bin/sh", "-c", script]).await {
                Ok(printed) if printed.contains(wanted) => Seen::Ready(()),
                other => Seen::NotYet(format!("{other:?}")),
            })
        })
        .await
}
