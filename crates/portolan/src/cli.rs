//! The command line.

mod explain;
mod get;
mod peering;

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

pub(crate) use explain::{DataFormat, ExplainArgs, PlanArgs};
pub(crate) use get::{GetArgs, GetFormat, StatusArgs};
pub(crate) use peering::{PeerArgs, PeerFormat, UnpeerArgs};

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
    /// Makes a cluster a member of the fleet, with a credential of least privilege.
    Peer(Box<PeerArgs>),
    /// Lets a member of the fleet go.
    Unpeer(UnpeerArgs),
    /// Lists the members of the fleet, or workloads with what each member has of them.
    Get(GetArgs),
    /// Tells how the fleet fares, or one workload: its clusters, what waits and why, and what happened.
    Status(StatusArgs),
    /// Shows what applying manifests would do: what each cluster has before and after, and why. Changes nothing.
    Plan(PlanArgs),
    /// Tells why a workload is where it is: what was asked of each cluster, with numbers, and what was decided.
    Explain(ExplainArgs),
    /// Prints the custom resource definitions, to be applied to a hub by `kubectl apply --server-side -f -`.
    Crds(CrdsArgs),
    /// Converts manifests of mck8s, Liqo 0.5.4 and the KU Leuven FeatureConfig into those of Portolan.
    Convert(ConvertArgs),
    /// Whole Kubernetes clusters inside this process, for kubectl and for trying things out.
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    /// Prints a completion script for a shell.
    Completion(CompletionArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Runs unattended and ends after this many seconds at the latest; it exits 0 only if all that it shows came true.
    ///
    /// Without it, on a terminal, the clusters stay for kubectl until Ctrl-C.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Serves clusters on loopback, with a kubeconfig for all of them, until Ctrl-C. Nothing is kept.
    Up(SandboxUpArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SandboxUpArgs {
    /// How many clusters; they are called c1, c2 and so on.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) clusters: u16,

    /// How many simulated nodes each cluster has.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=5000))]
    pub(crate) nodes: u16,

    /// The CPUs of a node.
    #[arg(long, default_value = "4", value_name = "QUANTITY")]
    pub(crate) cpu: String,

    /// The memory of a node.
    #[arg(long, default_value = "16Gi", value_name = "QUANTITY")]
    pub(crate) memory: String,

    /// The port of the first cluster; the others follow. Without it, free ports are taken.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,

    /// A file that says how pods behave on the nodes: how long they take to start, how they end, what they use.
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,

    /// Lets the nodes renew Leases every ten seconds, as real ones do.
    #[arg(long)]
    pub(crate) heartbeats: bool,

    /// Where the kubeconfig is written; without it, into a directory of its own that goes with the clusters.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Says at the end which verbs on which resources were called, and how often.
    #[arg(long)]
    pub(crate) calls: bool,
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

    /// Whether controllers of the same hub elect the one that works; without it, see to it that only one runs.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub(crate) leader_elect: bool,

    /// The namespace, in the hub, of the Lease that the election is held by. It is made if it is not there.
    #[arg(long, value_name = "NAMESPACE", default_value = "portolan")]
    pub(crate) lease_namespace: String,

    /// The name of that Lease.
    #[arg(long, value_name = "NAME", default_value = "portolan-controller")]
    pub(crate) lease_name: String,
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
