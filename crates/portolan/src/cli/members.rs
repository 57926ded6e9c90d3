//! The arguments of the commands that work on members: `cordon`, `uncordon`, `logs`, `events`, and of `version`.

use super::{ClusterArgs, DataFormat, LeaseArgs};
use clap::Args;
use portolan_api::duration::Duration;

#[derive(Debug, Args)]
pub(crate) struct CordonArgs {
    /// The names of members.
    #[arg(required = true, value_name = "CLUSTER")]
    pub(crate) names: Vec<String>,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

/// One workload, and which of its members are asked.
#[derive(Debug, Args)]
pub(crate) struct WorkloadArgs {
    /// The workload as KIND/NAME or KIND NAME, such as mcd/web.
    #[arg(required = true, num_args = 1..=2, value_name = "WORKLOAD")]
    pub(crate) object: Vec<String>,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// The namespace; without it, that of the context.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// Ask only this member. Can be given several times.
    #[arg(long = "cluster", value_name = "CLUSTER")]
    pub(crate) clusters: Vec<String>,

    /// The context of your kubeconfig for a member, as CLUSTER=CONTEXT; without it, the context with the member's name.
    /// Can be given several times.
    #[arg(long = "member-context", value_name = "CLUSTER=CONTEXT")]
    pub(crate) contexts: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  portolan logs controller
  portolan logs mcd/web -n shop
  portolan logs mcd/web -n shop -f --tail 100 --cluster paris
  portolan logs mcj/nightly -n shop --since 1h --member-context paris=kind-paris

The members are read with your own credentials: the hub's account may not read logs. Each member needs a context in your
kubeconfig. `portolan logs controller` reads the pods of Portolan's controller in the hub, in namespace portolan or the one
of -n.")]
pub(crate) struct LogsArgs {
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,

    /// The container; without it, the default one of each pod.
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_containers")]
    pub(crate) container: Option<String>,

    /// All containers of each pod.
    #[arg(long)]
    pub(crate) all_containers: bool,

    /// Print new lines as they are written, until Ctrl-C.
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// How many lines of each container, the latest; -1 is all.
    #[arg(long, value_name = "LINES", default_value_t = 10, allow_hyphen_values = true)]
    pub(crate) tail: i64,

    /// Only lines that are not older than this, such as 5m.
    #[arg(long, value_name = "TIME", value_parser = super::time)]
    pub(crate) since: Option<Duration>,

    /// Begin each line with its time.
    #[arg(long)]
    pub(crate) timestamps: bool,

    /// The logs of the containers before their last restart.
    #[arg(short, long)]
    pub(crate) previous: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  portolan events mcd/web -n shop
  portolan events mcd/web -n shop --cluster paris
  portolan events cp/burst

The members are read with your own credentials. Each member needs a context in your kubeconfig. Autoscalers (mchpa),
CloudProvisioners (cp) and reschedulers (mcr) have events in the hub only.")]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,

    /// Leave out the headings of the table.
    #[arg(long)]
    pub(crate) no_headers: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VersionArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// Print only the version of this program; ask no cluster.
    #[arg(long)]
    pub(crate) client: bool,

    #[command(flatten)]
    pub(crate) lease: LeaseArgs,

    /// The form of the output; without it, text.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<DataFormat>,
}
