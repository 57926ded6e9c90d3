//! Portolan on real Kubernetes. One binary, so that it links once.

mod admission;
mod autoscale;
mod burst;
mod conformance;
mod contents;
mod crds;
mod edits;
mod endpoints;
mod expiry;
mod fleet;
mod following;
mod granted;
mod install;
mod installed;
mod invitation;
mod invited;
mod jobs;
mod migration;
mod monitoring;
mod outlook;
mod partition;
mod peered;
mod peering;
mod placement;
mod policies;
mod proof;
mod recovery;
mod rights;
mod sequences;
mod services;
mod signing;
mod tenancy;
mod tenants;
mod upgrade;
mod webhook;

use anyhow::{Context, Result};
use portolan_lab::{Cluster, Seen};
use proof::{TIMEOUT, eventually};
use serde_json::Value;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;

/// Whether the lab can run here. Without root it cannot: that is said loudly, and is a failure in CI.
fn can_run(test: &str) -> bool {
    let root = std::process::Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    if !root {
        let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        assert!(!ci, "{test} needs root, and CI may not skip the lab");
        eprintln!("!!! SKIPPED {test}: the lab needs root");
    }
    root
}

/// Makes Portolan's kinds known to a cluster, and waits until it serves them.
async fn install_kinds(hub: &Cluster) -> Result<()> {
    let kinds = portolan_api::crds();
    let objects = kinds.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
    kubectl_apply(hub, &objects).await?;
    hub.kubectl(&["wait", "--for=condition=Established", "crd", "--all", TIMEOUT]).await?;
    eventually("all kinds are served", async || {
        let served = hub.kubectl(&["api-resources", "--api-group=portolan.dev", "-o", "name"]).await?;
        Ok(if served.lines().count() == kinds.len() { Seen::Ready(()) } else { Seen::NotYet(served) })
    })
    .await
}

/// Applies objects as a user does.
async fn kubectl_apply(cluster: &Cluster, objects: &[Value]) -> Result<String> {
    let text = objects.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n---\n");
    kubectl_with_input(cluster, &["apply", "--server-side", "-f", "-"], &text).await
}

/// Runs kubectl with something on its standard input; a refusal is an error that carries its message.
async fn kubectl_with_input(cluster: &Cluster, arguments: &[&str], input: &str) -> Result<String> {
    let mut command = tokio::process::Command::from(cluster.kubectl_command(arguments));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().context("kubectl has a standard input")?;
    stdin.write_all(input.as_bytes()).await?;
    drop(stdin);
    let output = child.wait_with_output().await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    anyhow::ensure!(output.status.success(), "kubectl {}: {}", arguments.join(" "), text(&output.stderr));
    Ok(text(&output.stdout))
}
