//! The arguments of `portolan simulate`.

use super::ClusterArgs;
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
  portolan simulate --from-fleet --context hub lose-paris.yaml
  portolan simulate --from-fleet --context hub --write today.yaml

The same scenario and seed give the same output, byte for byte.

--from-fleet only reads: the hub with --kubeconfig and --context, and the members with your own
credentials, as `portolan logs` does. What cannot be read is named, with what is assumed instead.")]
pub(crate) struct SimulateArgs {
    /// The name of a shipped scenario, or a scenario file; `-` is standard input. With --from-fleet, what happens to the
    /// fleet; without it, nothing does for 30 minutes.
    #[arg(value_name = "SCENARIO", required_unless_present_any = ["list", "schema", "from_fleet"])]
    pub(crate) scenario: Option<String>,

    /// Begin with the members, nodes and workloads that the fleet of a hub has now.
    #[arg(long, conflicts_with_all = ["list", "schema"])]
    pub(crate) from_fleet: bool,

    /// Write the scenario into this file, and do not play it; `-` is standard output.
    #[arg(long, value_name = "FILE", requires = "from_fleet", conflicts_with_all = ["compare", "baseline", "output_dir"])]
    pub(crate) write: Option<PathBuf>,

    /// With --from-fleet: the context of your kubeconfig for a member, as CLUSTER=CONTEXT; without it, the context with the
    /// member's name. Can be given several times.
    #[arg(long = "member-context", value_name = "CLUSTER=CONTEXT", requires = "from_fleet")]
    pub(crate) contexts: Vec<String>,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

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
