//! The arguments of `portolan peer` and `portolan unpeer`.

use super::ClusterArgs;
use clap::{Args, ValueEnum};
use portolan_api::duration::Duration;
use std::path::PathBuf;

/// The other cluster, as in kubectl.
#[derive(Debug, Args)]
pub(crate) struct RemoteArgs {
    /// The kubeconfig file with the member's context; without it, that of the hub.
    #[arg(long, value_name = "FILE")]
    pub(crate) remote_kubeconfig: Option<PathBuf>,

    /// The context of the member.
    #[arg(long, value_name = "NAME")]
    pub(crate) remote_context: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  portolan peer --context hub --remote-context paris --namespace shop
  portolan peer --context hub --local --name home
  portolan peer --context rome - < invitation
  portolan peer --context hub --remote-context paris --dry-run -o yaml

The same command again creates what is missing, opens further namespaces and makes a new token.")]
pub(crate) struct PeerArgs {
    /// The line that `portolan invite` printed for the provider; `-` reads it from standard input. Then no access to the
    /// provider is needed but what the line gives.
    #[arg(value_name = "INVITATION", conflicts_with_all = ["remote_context", "remote_kubeconfig", "remote_server", "local"])]
    pub(crate) invitation: Option<String>,

    /// What this cluster is called by the other one, with an invitation or with --bidirectional; without it, the name that
    /// its installation has, or that of its context.
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster_name: Option<String>,

    /// Make this cluster a member of the other cluster's fleet, too. That one needs a controller of its own.
    #[arg(long, conflicts_with_all = ["local", "invitation", "dry_run"])]
    pub(crate) bidirectional: bool,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,

    /// Add the hub as a member of its own fleet.
    #[arg(long, conflicts_with_all = ["remote_context", "remote_kubeconfig", "remote_server"])]
    pub(crate) local: bool,

    /// The name of the member in the fleet; without it, that of its context.
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// The URL by which the hub reaches the member's API server, if it is not that of the member's installation
    /// (`portolan install --api-server-url`) or of its context.
    #[arg(long, value_name = "URL")]
    pub(crate) remote_server: Option<String>,

    /// Allow http and certificates that are not checked. Others on the way can then read the member's token.
    #[arg(long)]
    pub(crate) insecure: bool,

    /// Open this namespace of the member to placement, and create it if it does not exist. Can be given several times.
    #[arg(short, long = "namespace", value_name = "NAME")]
    pub(crate) namespaces: Vec<String>,

    /// Allow namespaces of the system in --namespace: kube-* and portolan. The hub may then read all Secrets there.
    #[arg(long)]
    pub(crate) allow_system_namespaces: bool,

    /// The Pod Security Standard that is enforced in namespaces that are created. Namespaces that exist keep theirs.
    #[arg(long, value_name = "LEVEL", default_value = "baseline", value_parser = ["privileged", "baseline", "restricted"])]
    pub(crate) pod_security: String,

    /// Allow the hub to place in every namespace of the member that has the label portolan.dev/placement=allowed, now or
    /// later; without it, in those of --namespace only.
    #[arg(long)]
    pub(crate) all_labelled_namespaces: bool,

    /// A label of the ForeignCluster, which cluster selectors match, as KEY=VALUE. Can be given several times.
    #[arg(short, long = "label", value_name = "KEY=VALUE")]
    pub(crate) labels: Vec<String>,

    /// The region of the member: the label topology.kubernetes.io/region.
    #[arg(long)]
    pub(crate) region: Option<String>,

    /// The member costs money while it exists, and is chosen last.
    #[arg(long)]
    pub(crate) cloud: bool,

    /// A round-trip time to another member that is given instead of measured, such as rome=12ms. Can be given several times.
    #[arg(long = "latency", value_name = "CLUSTER=TIME")]
    pub(crate) latencies: Vec<String>,

    /// The Service of a Prometheus in the member that is queried for the traffic of applications, such as
    /// monitoring/prometheus:9090. The hub gets the right to that one Service's proxy.
    #[arg(long, value_name = "NAMESPACE/SERVICE:PORT", requires = "traffic_query")]
    pub(crate) traffic_from_prometheus: Option<String>,

    /// The query for Prometheus: requests per second, by the labels namespace and workload.
    #[arg(long, value_name = "QUERY", requires = "traffic_from_prometheus")]
    pub(crate) traffic_query: Option<String>,

    /// How long the member's token is valid; it is renewed at half of that while the controller runs.
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = super::time)]
    pub(crate) token_lifetime: Duration,

    /// How long to wait until the member is Ready; 0s does not wait.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = super::time)]
    pub(crate) timeout: Duration,

    /// Print the objects that would be created in the member and in the hub, and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print the ForeignCluster at the end, in this form; with --dry-run, all objects.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<PeerFormat>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PeerFormat {
    /// YAML documents.
    Yaml,
    /// One JSON object: a List if there are several.
    Json,
    /// The name only.
    Name,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  portolan unpeer paris --context hub --remote-context paris
  portolan unpeer paris --context hub --remote-context paris --drain")]
pub(crate) struct UnpeerArgs {
    /// The name of the member.
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,

    /// Move the member's workloads to other members first, and wait until they are ready there.
    #[arg(long, conflicts_with = "force")]
    pub(crate) drain: bool,

    /// Remove the member although it has workloads; their copies stay there and keep running.
    #[arg(long)]
    pub(crate) force: bool,

    /// How long to wait until the workloads run in other members.
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = super::time)]
    pub(crate) timeout: Duration,

    /// Print the planned changes, and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}
