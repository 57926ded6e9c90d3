//! The arguments of `portolan install`, `portolan upgrade` and `portolan uninstall`.

use super::{ClusterArgs, PeerFormat};
use clap::Args;
use portolan_api::duration::Duration;
use portolan_install::Provider;
use std::path::PathBuf;

/// How Portolan is to be.
#[derive(Debug, Args)]
pub(crate) struct ValueArgs {
    /// A file with values, in YAML. Can be given several times; later files win.
    #[arg(long, value_name = "FILE")]
    pub(crate) values: Vec<PathBuf>,

    /// A value, such as image.pullPolicy=Always, in the syntax of Helm. Can be given several times.
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<String>,

    /// Run two controllers, of which one leads.
    #[arg(long)]
    pub(crate) enable_ha: bool,

    /// The name by which other clusters know this one, if they peer by an invitation.
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster_name: Option<String>,

    /// Labels of this cluster, which a hub gives to its ForeignCluster when it peers by a context.
    #[arg(long, value_name = "KEY=VALUE,...", value_delimiter = ',')]
    pub(crate) cluster_labels: Vec<String>,

    /// Share this much of the cluster, such as 50%, with each cluster that peers by an invitation, unless a ForeignCluster or
    /// the default SharingClass says more. A number without % is a percentage too.
    #[arg(long, visible_alias = "sharing-percentage", value_name = "PERCENTAGE")]
    pub(crate) sharing: Option<String>,

    /// Let members measure the round-trip time to each other. It is needed in the hub, which then tells each member that measures
    /// the addresses of the others, and in each member that is to connect to them.
    #[arg(long)]
    pub(crate) measure_latency: bool,

    /// Report the capacity of this cluster in a summary of a few kilobytes to those hubs that ask for it, so that they need not watch
    /// its nodes and pods. It is needed in members of thousands of nodes whose ForeignCluster says capacity.fromReport.
    #[arg(long)]
    pub(crate) report_capacity: bool,

    /// The URL by which other clusters reach the API server, if it is not that of the kubeconfig.
    #[arg(long, value_name = "URL")]
    pub(crate) api_server_url: Option<String>,

    /// The range of addresses of pods. It is kept on record for a network between clusters, and nothing reads it yet.
    #[arg(long, value_name = "CIDR")]
    pub(crate) pod_cidr: Option<String>,

    /// The range of addresses of Services. It is kept on record, and nothing reads it yet.
    #[arg(long, value_name = "CIDR")]
    pub(crate) service_cidr: Option<String>,

    /// Private ranges of addresses that are in use beside those of pods and Services. They are kept on record, and nothing
    /// reads them yet.
    #[arg(long, value_name = "CIDR,...", value_delimiter = ',')]
    pub(crate) reserved_subnets: Vec<String>,
}

/// What the cloud calls the cluster. Nothing is asked of the cloud: names and regions become the name and labels.
#[derive(Debug, Default, Args)]
pub(crate) struct ProviderArgs {
    /// EKS: the name of the cluster.
    #[arg(long, value_name = "NAME")]
    pub(crate) eks_cluster_name: Option<String>,

    /// EKS: its region.
    #[arg(long, value_name = "REGION")]
    pub(crate) eks_cluster_region: Option<String>,

    /// AKS: the name of the cluster.
    #[arg(long, value_name = "NAME")]
    pub(crate) resource_name: Option<String>,

    /// AKS: its resource group.
    #[arg(long, value_name = "NAME")]
    pub(crate) resource_group_name: Option<String>,

    /// AKS: its subscription.
    #[arg(long, value_name = "NAME")]
    pub(crate) subscription_name: Option<String>,

    /// GKE: the name of the cluster.
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster_id: Option<String>,

    /// GKE: its project.
    #[arg(long, value_name = "NAME")]
    pub(crate) project_id: Option<String>,

    /// GKE: its zone, if it is zonal.
    #[arg(long, value_name = "ZONE", conflicts_with = "region")]
    pub(crate) zone: Option<String>,

    /// GKE: its region, if it is regional.
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,

    /// GKE: not needed, and ignored with a warning. Google is not asked, and the file is not read.
    #[arg(long, value_name = "FILE")]
    pub(crate) credentials_path: Option<PathBuf>,

    /// AKS: not needed, and ignored with a warning. The URL of the API server is that of the kubeconfig or of --api-server-url, and
    /// is not compared with what Azure says.
    #[arg(long)]
    pub(crate) disable_endpoint_check: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  portolan install --cluster-name paris
  portolan install kind --enable-ha --sharing 50%
  portolan install --dry-run -o yaml
  portolan install eks --eks-cluster-name paris --only-output-values --dump-values-path values.yaml

The same command again changes nothing, and goes on with an installation that was interrupted. `portolan crds --roles` prints
what a controller outside of the cluster needs; `portolan install` takes that over.")]
pub(crate) struct InstallArgs {
    /// What the cluster runs on: kind, k3s, kubeadm, eks, gke, aks, openshift or generic; without it, what its nodes tell.
    pub(crate) provider: Option<Provider>,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    #[command(flatten)]
    pub(crate) values: ValueArgs,

    #[command(flatten)]
    pub(crate) cloud: ProviderArgs,

    /// How long to wait until Portolan runs. After that, and after any failure, everything is as it was before.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = super::time)]
    pub(crate) timeout: Duration,

    /// Print what would be applied, and what that would change; change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print the objects in this form; without --dry-run, at the end.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<PeerFormat>,

    /// Write the values to a file, for the Helm chart, and install nothing.
    #[arg(long, conflicts_with_all = ["dry_run", "output"])]
    pub(crate) only_output_values: bool,

    /// The file for --only-output-values.
    #[arg(long, value_name = "FILE", default_value = "values.yaml", requires = "only_output_values")]
    pub(crate) dump_values_path: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The values of the installation are kept, except those that are given. Nothing is restarted that need not be: workloads in the
members never are, and the controller only if its pod changes.")]
pub(crate) struct UpgradeArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    #[command(flatten)]
    pub(crate) values: ValueArgs,

    /// Begin with the defaults instead of the values of the installation.
    #[arg(long)]
    pub(crate) reset_values: bool,

    /// How long to wait until Portolan runs. After that, and after any failure, everything is as it was before.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = super::time)]
    pub(crate) timeout: Duration,

    /// Print what would be applied, and what that would change; change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print the objects in this form; without --dry-run, at the end.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<PeerFormat>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
It refuses while the cluster has members or workloads that are placed in them: `portolan unpeer` and `kubectl delete` come first.
Copies in members are never deleted by it.")]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// Delete also Portolan's custom resource definitions, with all objects of its kinds, and its namespace.
    #[arg(long)]
    pub(crate) purge: bool,

    /// How long to wait until everything is deleted.
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = super::time)]
    pub(crate) timeout: Duration,

    /// Print what would be deleted, and delete nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}
