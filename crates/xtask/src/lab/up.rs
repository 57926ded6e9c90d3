//! `lab up`: start a lab and say what it cost.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use portolan_lab::parts::DEFAULT_KUBERNETES;
use portolan_lab::{Cidr, Lab};

use super::DEFAULT_NAME;
use crate::table::Table;

/// What the lab shall be.
#[derive(Args)]
pub(crate) struct Up {
    /// Number of clusters; they are named c1, c2 and so on.
    #[arg(long, default_value_t = 1)]
    clusters: u32,
    /// Number of nodes of each cluster; the first one also runs the control plane.
    #[arg(long, default_value_t = 1)]
    nodes: u32,
    /// Number of simulated nodes of each cluster, beside the real ones.
    #[arg(long, default_value_t = 0)]
    kwok: u32,
    /// Pods run on simulated nodes alone: there are neither kubelets nor DNS.
    #[arg(long, requires = "kwok")]
    only_simulated: bool,
    /// Version of Kubernetes; `lab pin` adds one.
    #[arg(long, default_value = DEFAULT_KUBERNETES)]
    kubernetes: String,
    /// Name of the lab.
    #[arg(long, env = "PORTOLAN_LAB", default_value = DEFAULT_NAME)]
    name: String,
    /// Range for pods: one for each cluster, or one for all of them, which then overlap.
    #[arg(long, value_name = "CIDR", value_delimiter = ',')]
    pod_cidr: Vec<Cidr>,
    /// Range for services: one for each cluster, or one for all of them, which then overlap.
    #[arg(long, value_name = "CIDR", value_delimiter = ',')]
    service_cidr: Vec<Cidr>,
}

pub(super) async fn run(up: Up) -> Result<()> {
    let lab = Lab::builder();
    let lab = if up.only_simulated { lab.only_simulated() } else { lab };
    let starting = lab
        .name(&up.name)
        .clusters(up.clusters)
        .nodes(up.nodes)
        .kwok(up.kwok)
        .kubernetes(&up.kubernetes)
        .pod_cidrs(up.pod_cidr)
        .service_cidrs(up.service_cidr)
        .detached()
        .start();
    let lab = tokio::select! {
        lab = starting => lab?,
        // Dropping the unfinished lab clears away what there is of it.
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
    };
    print!("{}", report(&lab));
    let kubeconfig = lab.kubeconfig_path()?;
    println!("\nLab {} is ready after {:.1} s.", lab.name(), lab.took().as_secs_f64());
    println!("  export KUBECONFIG={}", kubeconfig.display());
    println!("  cargo xtask lab kubectl c1 -- get nodes");
    println!("  cargo xtask lab down {}", lab.name());
    Ok(())
}

fn report(lab: &Lab) -> Table {
    let seconds =
        |took: Option<Duration>| took.map_or(String::new(), |took| format!("{:.2}", took.as_secs_f64()));
    let mebibytes = |bytes: Option<u64>| bytes.map_or(String::new(), |bytes| (bytes >> 20).to_string());
    let mut table = Table::new(["WHERE", "PART", "READY AFTER (s)", "MEMORY (MiB)"]);
    let rows = lab.report();
    for row in &rows {
        table.row([row.place.clone(), row.part.clone(), seconds(row.ready_after), mebibytes(row.memory)]);
    }
    let total = rows.iter().filter(|row| row.part != "cluster").filter_map(|row| row.memory).sum();
    table.row([lab.name().to_owned(), "total".to_owned(), seconds(Some(lab.took())), mebibytes(Some(total))]);
    table
}
