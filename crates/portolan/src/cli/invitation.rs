//! The arguments of `portolan invite`, `portolan accept` and `portolan generate`.

use super::ClusterArgs;
use clap::{Args, Subcommand};
use portolan_api::duration::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  portolan invite --context paris
  portolan invite --context paris --namespace shop --expires 1h --name rome
  portolan invite --context paris --manual

The line on standard output is a secret until it was used. Give it to `portolan peer -` in the other cluster, on standard
input: what stands on a command line is in the history of the shell and in the list of processes.")]
pub(crate) struct InviteArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// How long the invitation can be used.
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = super::time)]
    pub(crate) expires: Duration,

    /// Allow the consumer to place workloads in this namespace, which is created if it does not exist. Can be given several
    /// times. Without it, the consumer has no rights but in its own tenant namespace.
    #[arg(short, long = "namespace", value_name = "NAME")]
    pub(crate) namespaces: Vec<String>,

    /// Let the consumer see nodes, and pods and workloads in all namespaces. Without it, the consumer sees those namespaces only,
    /// and takes the room that is shared with it as that of one large node.
    #[arg(long, requires = "namespaces")]
    pub(crate) show_cluster: bool,

    /// Share this much of the cluster with the consumer, such as 50%. Without it, the default SharingClass says what is shared.
    #[arg(long, value_name = "PERCENTAGE")]
    pub(crate) sharing: Option<String>,

    /// Invite into namespaces in which pods run already. The consumer may then read the Secrets there, and its quota bounds
    /// those pods too: without room in it none of them is made again.
    #[arg(long, requires = "namespaces")]
    pub(crate) with_pods: bool,

    /// The name of the consumer here; without it, the consumer is called what it calls itself.
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// What this cluster is called by the consumer; without it, the name that its installation has, or that of its context.
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster_name: Option<String>,

    /// The URL by which the consumer reaches the API server of this cluster, if it is not that of the installation
    /// (`portolan install --api-server-url`) or of the context: that of a LoadBalancer, of a NodePort, of an Ingress that passes
    /// TLS through, or of the API server itself.
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,

    /// The name in the certificate of that URL, if it is another one.
    #[arg(long, value_name = "NAME")]
    pub(crate) tls_server_name: Option<String>,

    /// Let the consumer wait until `portolan accept` accepts it.
    #[arg(long)]
    pub(crate) manual: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AcceptArgs {
    /// The invitation, or the name of the cluster that has used it.
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GenerateCommand {
    /// Make an invitation, and print the command that uses it in the other cluster.
    PeerCommand(PeerCommandArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PeerCommandArgs {
    #[command(flatten)]
    pub(crate) invite: InviteArgs,

    /// Print the command only, for a pipe to a shell.
    #[arg(long)]
    pub(crate) only_command: bool,
}
