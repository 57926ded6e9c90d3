//! The arguments of `portolan simulate`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  portolan simulate --list
  portolan simulate paper-3
  portolan simulate paper-1 --baseline kubefed --output-dir results
  portolan simulate paper-2 --compare worst-fit:best-fit
  portolan simulate ./black-friday.yaml --seed 7 -o json

The same scenario and seed give the same output, byte for byte.")]
pub(crate) struct SimulateArgs {
    /// The name of a shipped scenario, or a scenario file; `-` is standard input.
    #[arg(value_name = "SCENARIO", required_unless_present_any = ["list", "schema"])]
    pub(crate) scenario: Option<String>,

    /// List the shipped scenarios and their variants.
    #[arg(long)]
    pub(crate) list: bool,

    /// Print the JSON schema of a scenario file.
    #[arg(long, conflicts_with = "list")]
    pub(crate) schema: bool,

    /// The number that everything random comes from; without it, that of the scenario.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,

    /// Play also the same tasks in the same clusters with another placement, and show both.
    #[arg(long, value_enum)]
    pub(crate) baseline: Option<BaselineArg>,

    /// Play also a variant of the scenario, and show both; or two variants, as FIRST:SECOND.
    #[arg(long, value_name = "VARIANT")]
    pub(crate) compare: Option<String>,

    /// Write into this directory the time series and the summary of each run as CSV, and figures as SVG and PNG.
    #[arg(long, value_name = "DIR")]
    pub(crate) output_dir: Option<PathBuf>,

    /// The form of the output.
    #[arg(short, long, value_enum, default_value_t = SimulateFormat::Table)]
    pub(crate) output: SimulateFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BaselineArg {
    /// Static placement: each task waits in the cluster that it prefers.
    Kubefed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimulateFormat {
    /// A table of the summary.
    Table,
    /// One JSON object: a list of the runs, with their summaries and time series.
    Json,
}
