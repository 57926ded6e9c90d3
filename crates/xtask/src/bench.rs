//! Benchmarks: see bench/.

use crate::steps::{build, run as run_command};
use anyhow::Result;
use clap::Args;
use std::process::Command;

#[derive(Args)]
pub(crate) struct BenchArgs {
    /// What to measure: writes, clusters, pods, idle, large, many, burst, one, steady, relabel, memory, paper, day, figures, lab-burst, lab-peering, lab-table.
    /// Without any, all but those on the lab.
    names: Vec<String>,
}

pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    run_command(Command::new(build("portolan-bench", true)?).args(&args.names))
}
