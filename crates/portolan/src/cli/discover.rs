//! The arguments of `portolan discover`.

use super::{ClusterArgs, GetFormat};
use clap::Args;
use portolan_api::duration::Duration;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
It looks at all contexts of the kubeconfig, and at the ClusterProfiles (multicluster.x-k8s.io) of
this cluster, and changes nothing.

States:
  Available    it answers, and is not peered
  NotAllowed   it answers, and you may not see who it is
  NoContext    it has a ClusterProfile and no context
  Unreachable  it does not answer
  Peered       it has peered with this cluster
  ThisCluster  it is this cluster

For a cluster that is NotAllowed or NoContext, ask its administrator for the line of
`portolan invite`.

Examples:
  portolan discover
  portolan discover --context hub --remote-kubeconfig others.yaml
  portolan discover -o json | jq -r '.items[] | select(.state == \"Available\") | .name'

Exit codes: 0 the clusters are listed, also if there are none; 1 this cluster does not answer or
refuses; 2 the command line is wrong.")]
pub(crate) struct DiscoverArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// The kubeconfig file whose contexts are looked at; without it, that of this cluster.
    #[arg(long, value_name = "FILE")]
    pub(crate) remote_kubeconfig: Option<PathBuf>,

    /// How long to wait for the answer of each context.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = super::time)]
    pub(crate) timeout: Duration,

    /// The form of the output; without it, a table.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<GetFormat>,

    /// Leave out the headings of the table.
    #[arg(long)]
    pub(crate) no_headers: bool,
}
