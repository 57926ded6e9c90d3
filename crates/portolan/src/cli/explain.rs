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

Exit codes: 0 nothing would change; 1 the command failed; 2 the input or the command line is wrong; 3 something would change;
4 something could not be placed.")]
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

    /// How long to wait until the members are known.
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
  portolan explain mcj/nightly -n shop -o yaml")]
pub(crate) struct ExplainArgs {
    /// The workload, as mcd/NAME, mcj/NAME or mcs/NAME.
    pub(crate) workload: String,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// The namespace; without it, that of the context.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// How long to wait until the members are known.
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = super::time)]
    pub(crate) timeout: Duration,

    /// The form of the output; without it, text.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<DataFormat>,
}
