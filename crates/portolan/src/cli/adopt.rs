//! The arguments of `adopt`.

use super::ClusterArgs;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  portolan adopt --list
  portolan adopt deployment web -n shop --from-hub 6f0c2b1e-7c55-4a41-9d0c-2f4b6b8f3a10
  portolan adopt deployment --all -n shop --from-hub 6f0c2b1e-7c55-4a41-9d0c-2f4b6b8f3a10 --dry-run
  portolan adopt deployment web -n shop --unmanaged --create --from-context paris --cluster paris

A MultiClusterDeployment that is marked places nothing until every member was asked for the Deployment of its name. The
Deployments that the mark names get Portolan's labels; no pod is restarted. The id of a hub is the uid of its namespace
kube-system, and stands on its copies as label portolan.dev/hub.")]
pub(crate) struct AdoptArgs {
    /// The workload: deployment NAME, or mcd/NAME. With --all, only the kind.
    #[arg(num_args = 0..=2, value_name = "WORKLOAD", required_unless_present = "list")]
    pub(crate) object: Vec<String>,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// The namespace; without it, that of the context.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// Take over what the hub of this id placed.
    #[arg(long, value_name = "ID", conflicts_with = "unmanaged")]
    pub(crate) from_hub: Option<String>,

    /// Take over Deployments that no hub placed.
    #[arg(long)]
    pub(crate) unmanaged: bool,

    /// All MultiClusterDeployments of the namespace.
    #[arg(long, conflicts_with = "create")]
    pub(crate) all: bool,

    /// Print what would be changed, and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// List the objects in members that this hub placed and has no object for any more.
    #[arg(long, conflicts_with_all = ["object", "from_hub", "unmanaged", "all", "create"])]
    pub(crate) list: bool,

    /// Create the MultiClusterDeployment from the Deployment in a member, with its template and selector as they are.
    #[arg(long, requires_all = ["from_context", "member"])]
    pub(crate) create: bool,

    /// The context of your kubeconfig for the member that has the Deployment.
    #[arg(long, value_name = "CONTEXT", requires = "create")]
    pub(crate) from_context: Option<String>,

    /// The name of that member: the MultiClusterDeployment is placed there.
    #[arg(long = "cluster", value_name = "CLUSTER", requires = "create")]
    pub(crate) member: Option<String>,
}
