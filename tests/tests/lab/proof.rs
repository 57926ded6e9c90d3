//! A proof on the lab: if it fails, what the clusters look like is shown first, and the failure last.

use super::fleet::CONTROLLER;
use anyhow::{Context, Result, anyhow};
use futures::FutureExt;
use portolan_lab::{Cluster, Lab, Seen, until};
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

/// Longer than anything takes that works, on a machine that is slow and busy.
pub(super) const LONG: Duration = Duration::from_secs(300);
/// [`LONG`] for kubectl.
pub(super) const TIMEOUT: &str = "--timeout=300s";
/// How often to look.
pub(super) const OFTEN: Duration = Duration::from_millis(200);

/// How many lines of a log or a list of events are shown.
const TAIL: usize = 40;

/// Runs a proof to its end, and shows the clusters if it fails.
pub(super) async fn shown(lab: &Lab, proof: impl Future<Output = Result<()>>) -> Result<()> {
    let failure = match AssertUnwindSafe(proof).catch_unwind().await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => error,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            anyhow!("panicked: {}", text.unwrap_or("without a word"))
        }
    };
    for cluster in lab.clusters() {
        show(cluster).await;
    }
    Err(failure)
}

/// Runs a part of a proof and says how long it took.
pub(super) async fn step<T>(what: &str, part: impl Future<Output = Result<T>>) -> Result<T> {
    let started = Instant::now();
    let done = part.await.with_context(|| what.to_owned())?;
    eprintln!("{what}: {:.1} s", started.elapsed().as_secs_f64());
    Ok(done)
}

/// Looks until it holds; what kubectl complains of meanwhile is what was seen last.
pub(super) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Result<Seen<T>>) -> Result<T> {
    until(what, LONG, OFTEN, async || {
        Ok(match look().await {
            Ok(seen) => seen,
            Err(error) => Seen::NotYet(format!("{error:#}")),
        })
    })
    .await
}

async fn show(cluster: &Cluster) {
    let name = cluster.name();
    let ours = "foreignclusters,multiclusterdeployments,multiclusterservices,multiclusterjobs";
    for kinds in [ours, "deployments,jobs,services,pods"] {
        let arguments = ["get", kinds, "--all-namespaces", "-o", "wide", "--request-timeout=20s"];
        match cluster.kubectl(&arguments).await {
            Ok(list) => eprintln!("--- {name}: {kinds}\n{}", list.trim_end()),
            // Members have none of our kinds.
            Err(error) if error.to_string().contains("the server doesn't have a resource type") => {}
            Err(error) => eprintln!("--- {name}: {error:#}"),
        }
    }
    let arguments = [
        "get",
        "events",
        "--all-namespaces",
        "--sort-by=.metadata.creationTimestamp",
        "--request-timeout=20s",
    ];
    match cluster.kubectl(&arguments).await {
        Ok(events) => eprintln!("--- {name}: the last events\n{}", tail(&events)),
        Err(error) => eprintln!("--- {name}: {error:#}"),
    }
    let log = ["-n", "portolan", "logs", "-l", CONTROLLER, "--tail=-1", "--request-timeout=20s"];
    match cluster.kubectl(&log).await {
        Ok(log) if log.is_empty() => {}
        Ok(log) => eprintln!("--- {name}: the end of Portolan's log\n{}", tail(&log)),
        Err(error) => eprintln!("--- {name}: {error:#}"),
    }
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL)..].join("\n")
}
