//! The arguments of `share` and `accept-offer`.

use super::ClusterArgs;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  portolan share rome 50%
  portolan share rome 50% --resource nvidia.com/gpu=1
  portolan share rome --resource cpu=8 --resource memory=16Gi
  portolan share rome --class gold
  portolan share rome --by-default
  portolan share rome 0%
  portolan share --default 30%

The clusters must have peered, and this cluster is the provider. A percentage is one of what the nodes of this cluster have.
`portolan get offers` shows what is offered and used.")]
pub(crate) struct ShareArgs {
    /// The consumer, and a percentage such as 50%.
    #[arg(value_name = "CLUSTER | PERCENTAGE", num_args = 0..=2)]
    pub(crate) words: Vec<String>,

    /// A fixed quantity of a resource, such as cpu=8, memory=16Gi or nvidia.com/gpu=1. Can be given several times.
    #[arg(long = "resource", value_name = "NAME=QUANTITY")]
    pub(crate) resources: Vec<String>,

    /// The SharingClass that says what is shared with the cluster.
    #[arg(long, value_name = "NAME", conflicts_with = "resources")]
    pub(crate) class: Option<String>,

    /// Share what the default SharingClass says.
    #[arg(long, conflicts_with_all = ["resources", "class"])]
    pub(crate) by_default: bool,

    /// Set what is shared with all clusters that have no sharing of their own: the SharingClass `default`.
    #[arg(long, conflicts_with_all = ["class", "by_default"])]
    pub(crate) default: bool,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AcceptOfferArgs {
    /// The names of providers.
    #[arg(required = true, value_name = "CLUSTER")]
    pub(crate) names: Vec<String>,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}
