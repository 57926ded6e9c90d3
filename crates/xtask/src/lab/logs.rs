//! `lab logs`.

use anyhow::{Result, bail};
use clap::Args;
use portolan_lab::{Component, Lab, Node};

use super::Which;

/// Which logs to show, and how much of them.
#[derive(Args)]
pub(crate) struct Logs {
    /// Name of the cluster.
    cluster: Option<String>,
    /// Name of the component, such as kube-apiserver or kubelet.
    component: Option<Component>,
    /// How many lines of each node's log to show.
    #[arg(long, short = 'n', default_value_t = 100)]
    tail: usize,
    #[command(flatten)]
    which: Which,
}

pub(super) fn run(logs: &Logs) -> Result<()> {
    let lab = logs.which.attach()?;
    match (&logs.cluster, logs.component) {
        (Some(cluster), Some(component)) => show(&lab, cluster, component, logs.tail),
        (cluster, _) => list(&lab, cluster.as_deref()),
    }
}

fn show(lab: &Lab, cluster: &str, component: Component, lines: usize) -> Result<()> {
    let cluster = lab.cluster(cluster)?;
    let nodes: Vec<&Node> = cluster.nodes().iter().filter(|node| node.log_file(component).exists()).collect();
    if nodes.is_empty() {
        bail!("cluster {} has no log of {component}: it was never started there", cluster.name());
    }
    for node in &nodes {
        if nodes.len() > 1 {
            println!("==> {} <==", node.name());
        }
        println!("{}", node.log_tail(component, lines));
    }
    Ok(())
}

/// The files, for a pager or `tail -f`.
fn list(lab: &Lab, cluster: Option<&str>) -> Result<()> {
    if let Some(cluster) = cluster {
        lab.cluster(cluster)?;
    }
    for each in lab.clusters().iter().filter(|each| cluster.is_none_or(|wanted| each.name() == wanted)) {
        for node in each.nodes() {
            for file in Component::ALL.map(|component| node.log_file(component)) {
                if file.exists() {
                    println!("{}", file.display());
                }
            }
        }
    }
    Ok(())
}
