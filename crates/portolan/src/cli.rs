//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Makes many Kubernetes clusters work as one.
///
/// Portolan peers clusters, places workloads over them by policy and keeps them where they should be. It runs on stock
/// Kubernetes; try it without any cluster by `portolan demo`.
#[derive(Debug, Parser)]
#[command(name = "portolan", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 done; 1 it failed; 2 the input or the command line is wrong.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Says more about what happens; given twice, everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Shows placement at work on clusters inside this process; needs no Kubernetes.
    Demo(DemoArgs),
    /// Runs the controllers against a hub cluster, until it is stopped.
    Controller(ControllerArgs),
    /// Prints the custom resource definitions, to be applied to a hub by `kubectl apply --server-side -f -`.
    Crds(CrdsArgs),
    /// Converts manifests of mck8s, Liqo 0.5.4 and the KU Leuven FeatureConfig into those of Portolan.
    Convert(ConvertArgs),
    /// Prints a completion script for a shell.
    Completion(CompletionArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Ends the demo after this many seconds at the latest; it exits 0 only if all that it shows came true.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: u64,

    /// The seed of everything that is random in the demo.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

/// Which cluster, in the words of kubectl.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// The kubeconfig file; without it, $KUBECONFIG, ~/.kube/config, or the cluster that Portolan runs in.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The context in the kubeconfig; without it, the current one.
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ControllerArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CrdsArgs {
    /// The form of the output.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    pub(crate) output: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// A file with one or more manifests; `-` is standard input. Can be given several times.
    #[arg(short, long = "filename", value_name = "FILE", required = true)]
    pub(crate) filename: Vec<PathBuf>,

    /// The form of the output.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    pub(crate) output: Format,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// YAML documents.
    Yaml,
    /// One JSON object: a List if there are several.
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
