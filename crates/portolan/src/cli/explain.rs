//! The arguments of `portolan plan` and `portolan explain`.

use super::ClusterArgs;
use clap::{Args, ValueEnum};
use portolan_api::duration::Duration;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  portolan plan -f web.yaml
  kustomize build . | portolan plan -f -

Exit codes: 0 nothing would change; 1 it failed; 2 the manifest, its template or the command line is wrong; 3 something
would change, or pods would be replaced; 4 something could not be placed, or a member refuses it; 5 running replicas would
go without a replacement. Of several, the worst counts: 2, then 5, 4 and 3.

MultiClusterHorizontalPodAutoscalers, CloudProvisioners and MultiClusterReschedulers have no placement. They are named and
not planned, and do not count for the exit code.")]
pub(crate) struct PlanArgs {
    /// A file with MultiClusterDeployments, MultiClusterJobs or MultiClusterServices; `-` is standard input. Can be given
    /// several times.
    #[arg(short, long = "filename", value_name = "FILE", required = true)]
    pub(crate) filename: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// The namespace of objects that name none; without it, that of the context.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// How long to wait for the controller to answer.
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = super::time)]
    pub(crate) timeout: Duration,

    /// The form of the output; without it, a table.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<DataFormat>,
}

/// A form that programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DataFormat {
    /// One JSON object per workload, one per line.
    Json,
    /// One YAML document per workload.
    Yaml,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  portolan explain mcd/web -n shop
  portolan explain mcj nightly -n shop -o yaml

Exit codes: 0 everything has its place; 1 it failed; 2 the command line is wrong; 4 something has no cluster, or a member
refuses it.")]
pub(crate) struct ExplainArgs {
    /// The workload, as mcd/NAME, mcj/NAME or mcs/NAME, or in two words.
    #[arg(required = true, num_args = 1..=2, value_name = "WORKLOAD")]
    pub(crate) workload: Vec<String>,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// The namespace; without it, that of the context.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// How long to wait for the controller to answer.
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = super::time)]
    pub(crate) timeout: Duration,

    /// The form of the output; without it, text.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<DataFormat>,
}
