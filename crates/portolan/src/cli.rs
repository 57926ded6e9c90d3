//! The command line.

mod adopt;
mod completion;
mod discover;
mod doctor;
mod explain;
mod get;
mod install;
mod invitation;
mod members;
mod order;
mod peering;
mod plugin;
mod sharing;
mod simulate;

use clap::{Args, Parser, Subcommand, ValueEnum};
use portolan_api::duration::Duration;
use portolan_control::PrometheusService;
use std::net::SocketAddr;
use std::path::PathBuf;

pub(crate) use adopt::AdoptArgs;
pub(crate) use completion::{CompletionArgs, CompletionFor};
pub(crate) use discover::DiscoverArgs;
pub(crate) use doctor::{BugReportArgs, DoctorArgs};
pub(crate) use explain::{DataFormat, ExplainArgs, PlanArgs};
pub(crate) use get::{GetArgs, GetFormat, StatusArgs};
pub(crate) use install::{InstallArgs, ProviderArgs, UninstallArgs, UpgradeArgs, ValueArgs};
pub(crate) use invitation::{AcceptArgs, GenerateCommand, InviteArgs};
pub(crate) use members::{CordonArgs, EventsArgs, LogsArgs, VersionArgs, WorkloadArgs};
pub(crate) use order::{MOVED, Ordered, as_kubectl_does};
pub(crate) use peering::{PeerArgs, PeerFormat, UnpeerArgs};
pub(crate) use plugin::parse;
pub(crate) use sharing::{AcceptOfferArgs, ShareArgs};
pub(crate) use simulate::{BaselineArg, SimulateArgs, SimulateFormat};

/// Run many Kubernetes clusters as one.
///
/// Portolan peers clusters, places workloads over them by policy and keeps them as placed. It runs on stock
/// Kubernetes. `portolan demo` shows it without any cluster.
#[derive(Debug, Parser)]
#[command(name = "portolan", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "\
The flags -n, --context and --kubeconfig may stand before the command, as in kubectl.

Exit codes: 0 done; 1 the command failed; 2 the input or the command line is wrong.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Log more; given twice, everything. `portolan status --verbose` also shows the checks of `portolan doctor`.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show Portolan at work on clusters inside this process; needs no Kubernetes.
    Demo(DemoArgs),
    /// Install Portolan in a cluster.
    Install(Box<InstallArgs>),
    /// Bring the Portolan of a cluster to the version of this program.
    Upgrade(Box<UpgradeArgs>),
    /// Delete Portolan from a cluster. Copies in members keep running.
    Uninstall(UninstallArgs),
    /// Run the controllers for a hub cluster, until stopped.
    Controller(ControllerArgs),
    /// List the clusters that could be peered: contexts of the kubeconfig and ClusterProfiles. Change nothing.
    Discover(DiscoverArgs),
    /// Add a cluster to the fleet, with a credential of least privilege.
    Peer(Box<PeerArgs>),
    /// Invite another cluster to peer with this one: print a line that can be used once, until it expires.
    Invite(Box<InviteArgs>),
    /// Accept a cluster that has used an invitation which asks first.
    Accept(AcceptArgs),
    /// Print commands to be run elsewhere.
    #[command(subcommand)]
    Generate(Box<GenerateCommand>),
    /// Remove a cluster from the fleet.
    Unpeer(UnpeerArgs),
    /// Set what this cluster shares with a cluster that has peered with it, or with all.
    Share(ShareArgs),
    /// Accept what clusters offer to this one, where spec.outgoing.acceptance is Manual.
    AcceptOffer(AcceptOfferArgs),
    /// List the members of the fleet, workloads with their replicas in each member, autoscalers, CloudProvisioners,
    /// reschedulers or offers.
    Get(GetArgs),
    /// Show the health of the fleet, or of one object: its clusters, what is pending with the reasons, recent events.
    Status(StatusArgs),
    /// Check the hub and each member hop by hop, and say what fails, where, and what to do. Change nothing.
    Doctor(DoctorArgs),
    /// Write an archive for a bug report: versions, checks, objects, events and logs, without secrets.
    BugReport(BugReportArgs),
    /// Show the effect of applying manifests: the replicas of each cluster before and after, and why. Change nothing.
    Plan(PlanArgs),
    /// Explain the placement of a workload: the filters of each cluster with their numbers, and the decision.
    Explain(ExplainArgs),
    /// Print the logs of a workload's pods in all its clusters, each line with its cluster and pod.
    Logs(LogsArgs),
    /// List the events of a workload, in the hub and in all its clusters, or those of another object of the hub.
    Events(EventsArgs),
    /// Mark members as unschedulable: no new replicas are placed there, running replicas stay.
    Cordon(CordonArgs),
    /// Mark members as schedulable again, also after an interrupted drain.
    Uncordon(CordonArgs),
    /// Let workloads take over Deployments of a hub that was lost, or of no hub, without restarting a pod.
    Adopt(AdoptArgs),
    /// Print the custom resource definitions, to be applied to a hub by `kubectl apply --server-side -f -`.
    Crds(CrdsArgs),
    /// Convert manifests of mck8s, Liqo 0.5.4 and the KU Leuven FeatureConfig into those of Portolan.
    Convert(ConvertArgs),
    /// Play a scenario with the controllers on simulated clusters in virtual time, and show what happens.
    Simulate(SimulateArgs),
    /// Run whole Kubernetes clusters inside this process, for kubectl and for experiments.
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    /// Print the script that makes a shell complete commands, flags, and the names of members, workloads, namespaces and
    /// contexts.
    Completion(CompletionArgs),
    /// Print the versions of this program, of the hub and of its controller, and the kinds that the hub serves.
    Version(VersionArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Run unattended, and fail if the demo is not done after this many seconds. It needs about 30.
    ///
    /// Without it, on a terminal, the clusters stay for kubectl until Ctrl-C.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Serve clusters on loopback, with a kubeconfig for all of them, until Ctrl-C. Nothing is kept.
    Up(SandboxUpArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SandboxUpArgs {
    /// The names of the clusters, such as hub,paris; without them, c1, c2 and so on.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with = "clusters")]
    pub(crate) names: Vec<String>,

    /// How many clusters.
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

    /// A file with the behaviour of pods on the nodes: their time to start, their exit and their use of resources.
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,

    /// Renew the Leases of the nodes every ten seconds, as real nodes do.
    #[arg(long)]
    pub(crate) heartbeats: bool,

    /// The file to write the kubeconfig to, which must not exist yet; without it, one in a temporary directory that is deleted when the sandbox stops.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Print at the end which verbs on which resources were called, and how often.
    #[arg(long)]
    pub(crate) calls: bool,
}

/// Which cluster, as in kubectl.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// The kubeconfig file; without it, $KUBECONFIG, ~/.kube/config, or the cluster that Portolan runs in.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The context in the kubeconfig; without it, the current one.
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

/// Which Lease the controllers share.
#[derive(Debug, Args)]
pub(crate) struct LeaseArgs {
    /// The namespace, in the hub, of the controller's Lease.
    #[arg(long, value_name = "NAMESPACE", default_value = "portolan")]
    pub(crate) lease_namespace: String,

    /// The name of that Lease.
    #[arg(long, value_name = "NAME", default_value = "portolan-controller")]
    pub(crate) lease_name: String,
}

#[derive(Debug, Args)]
pub(crate) struct ControllerArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// Use leader election, so that several controllers can run safely. If false, make sure that only one runs.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub(crate) leader_elect: bool,

    /// The namespace, in the hub, of the Lease of the election. It is created if it does not exist.
    #[arg(long, value_name = "NAMESPACE", default_value = "portolan")]
    pub(crate) lease_namespace: String,

    /// The name of that Lease.
    #[arg(long, value_name = "NAME", default_value = "portolan-controller")]
    pub(crate) lease_name: String,

    /// The Prometheus in the hub that queries of autoscalers are put to, through the proxy of its Service. Everybody
    /// who may create an autoscaler can then learn from it.
    #[arg(long, value_name = "NAMESPACE/SERVICE:PORT")]
    pub(crate) prometheus: Option<PrometheusService>,

    /// Share this much of the cluster, such as 50%, with each cluster that has peered by an invitation and of which neither its
    /// ForeignCluster nor a default SharingClass says what is shared.
    #[arg(long, value_name = "PERCENTAGE")]
    pub(crate) share_by_default: Option<String>,

    /// Let members measure the round-trip time to each other. The controller of the hub then tells each member that measures the
    /// names of the others and the addresses of their API servers. The controller of a member connects to the addresses that a
    /// hub names, by TLS, and reports how long each answer takes.
    #[arg(long)]
    pub(crate) measure_latency: bool,

    /// Report the capacity of this cluster in a summary of a few kilobytes to those hubs that ask for it, so that they need not watch
    /// its nodes and pods: see capacity.fromReport of ForeignClusters.
    #[arg(long)]
    pub(crate) report_capacity: bool,

    /// Serve /healthz, /readyz and /metrics over plain HTTP at this address, such as [::]:8080, which is all addresses of
    /// both families. Without it, nothing is served.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,

    /// The form of the log: a line of text for each event, or a JSON object.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

/// The form of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

impl LogFormat {
    pub(crate) fn is_json(self) -> bool {
        self == Self::Json
    }
}

#[derive(Debug, Args)]
pub(crate) struct CrdsArgs {
    /// Print also the kinds that no controller serves yet: objects of these kinds are stored and not acted on.
    #[arg(long)]
    pub(crate) experimental: bool,

    /// Print also the roles: the account of the controller with the rights that it needs in the hub, and ClusterRoles for
    /// developers.
    #[arg(long)]
    pub(crate) roles: bool,

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// YAML documents.
    Yaml,
    /// One JSON object: a List if there are several.
    Json,
}

/// A length of time on the command line: as in the API, or a plain number of seconds.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<u32>().map(|seconds| Duration::from_secs(seconds.into()));
    seconds
        .or_else(|_| text.parse())
        .map_err(|error: portolan_api::duration::ParseDurationError| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_are_seconds_or_have_a_unit() {
        let read = |text| time(text).map(|time| time.0.as_secs());
        assert_eq!(["5", "90s", "7d"].map(read), [Ok(5), Ok(90), Ok(604_800)]);
        assert!(time("soon").unwrap_err().contains("is not a duration"));
    }
}
