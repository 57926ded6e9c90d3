//! The arguments of `portolan doctor` and `portolan bug-report`.

use super::{ClusterArgs, DataFormat, LeaseArgs};
use clap::Args;
use portolan_api::duration::Duration;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  portolan doctor
  portolan doctor lille --timeout 20s
  portolan doctor -o json --member-context lille=kind-lille

Each check is healthy, a warning, a problem, or unknown: what you may not read is unknown, with the right that is missing.
Members are checked with the hub's credential, which takes the right to get Secrets in namespace portolan; webhooks and
APIServices of members are read with your own, by the context with the member's name.

Exit codes: 0 no problem was found; 1 a problem was found, or the command failed; 2 the command line is wrong.")]
pub(crate) struct DoctorArgs {
    /// The names of members; without them, all.
    #[arg(value_name = "CLUSTER")]
    pub(crate) names: Vec<String>,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    #[command(flatten)]
    pub(crate) lease: LeaseArgs,

    /// The context of your kubeconfig for a member, as CLUSTER=CONTEXT; without it, the context with the member's name.
    /// Can be given several times.
    #[arg(long = "member-context", value_name = "CLUSTER=CONTEXT")]
    pub(crate) contexts: Vec<String>,

    /// How long the checks of the hub, and those of one member, may take.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = super::time)]
    pub(crate) timeout: Duration,

    /// The form of the output; without it, text.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<DataFormat>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The archive holds versions, the output of `portolan doctor`, Portolan's objects in the hub with their events, and the logs of
the controller if it runs in the hub. It holds no Secret and no ConfigMap; tokens, keys, certificates, passwords, and the
environment, commands and annotations of pod templates are replaced by <redacted>. Read it before you send it.")]
pub(crate) struct BugReportArgs {
    /// The file to write, which must not exist yet; without it, portolan-bug-report-TIME.tar.gz here.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Replace IP addresses and the host names of URLs too.
    #[arg(long)]
    pub(crate) hide_addresses: bool,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    #[command(flatten)]
    pub(crate) lease: LeaseArgs,

    /// How long the checks of the hub, and those of one member, may take.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = super::time)]
    pub(crate) timeout: Duration,
}
