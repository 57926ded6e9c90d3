//! The arguments of `portolan get` and `portolan status`.

use super::{ClusterArgs, DataFormat, LeaseArgs};
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = "\
Kinds: clusters (cluster, foreignclusters, fc), mcd, mcj, mcs, mchpa (autoscalers), cp (CloudProvisioners), mcr
(reschedulers), offers, or their full names.

Examples:
  portolan get clusters
  portolan get mcd -A --watch
  portolan get mcd/web -n shop -o yaml
  portolan get mchpa -A -o wide
  portolan get cp
  portolan get offers")]
pub(crate) struct GetArgs {
    /// The kind to list, or KIND/NAME.
    pub(crate) kind: String,

    /// Names; without them, all.
    pub(crate) names: Vec<String>,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    #[command(flatten)]
    pub(crate) place: NamespaceArgs,

    /// Only objects with these labels, as in kubectl.
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub(crate) selector: Option<String>,

    /// The form of the output; without it, a table.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<GetFormat>,

    /// Print changes as they happen, until Ctrl-C.
    #[arg(short, long)]
    pub(crate) watch: bool,

    /// Leave out the headings of the table.
    #[arg(long)]
    pub(crate) no_headers: bool,
}

/// Which namespace, as in kubectl.
#[derive(Debug, Args)]
pub(crate) struct NamespaceArgs {
    /// The namespace; without it, that of the context.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// All namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GetFormat {
    /// A table with more columns.
    Wide,
    /// JSON: the object if one name is given, otherwise a List.
    Json,
    /// YAML documents.
    Yaml,
    /// Names only.
    Name,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  portolan status
  portolan status mcd/web -n shop
  portolan status clusters/paris -o json
  portolan status mchpa/web -n shop
  portolan status cp/burst

The fleet has a line for each member and workload, and for each autoscaler, CloudProvisioner and rescheduler that is not
Ready.

With --verbose follow the version and leader of the controller, for each peer its role,
authentication, sharing in each direction, latencies and certificates, and the checks of
`portolan doctor`.

Exit codes: 0 all is Ready; 1 the command failed; 2 the command line is wrong; 3 something is not Ready, no controller leads,
or, with --verbose, a check has found a problem. Members or workloads that you may not read are named on standard error, and do not count.")]
pub(crate) struct StatusArgs {
    /// A workload, a member, an autoscaler, a CloudProvisioner or a rescheduler as KIND/NAME or KIND NAME, such as mcd/web;
    /// without it, the whole fleet.
    #[arg(num_args = 0..=2, value_name = "OBJECT")]
    pub(crate) object: Vec<String>,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// The namespace; without it, that of the context for one object, and all for the fleet.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    #[command(flatten)]
    pub(crate) lease: LeaseArgs,

    /// The form of the output; without it, text.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<DataFormat>,
}
