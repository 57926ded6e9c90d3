//! `cargo xtask lab`: real Kubernetes clusters on this machine.

mod list;
mod logs;
mod parts;
mod up;

pub(crate) use self::parts::ensure_all;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use portolan_lab::{Cluster, Component, Lab, state};

/// Name of a lab for which none is given.
const DEFAULT_NAME: &str = "lab";

/// What can be done with labs.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start clusters and wait until their nodes are Ready. Parts that are not in the cache are made first.
    Up(up::Up),
    /// List the labs of this machine.
    List,
    /// Run kubectl against a cluster: `lab kubectl c1 -- get pods -A`.
    Kubectl {
        /// Name of the cluster.
        cluster: String,
        /// What kubectl is to do.
        #[arg(last = true, required = true)]
        args: Vec<String>,
        #[command(flatten)]
        which: Which,
    },
    /// Run a command on a node: `lab exec c1-n1 -- ip route`.
    Exec {
        /// Name of the node.
        node: String,
        /// The command.
        #[arg(last = true, required = true)]
        command: Vec<String>,
        #[command(flatten)]
        which: Which,
    },
    /// Import an image archive (OCI or Docker) into all nodes.
    Load {
        /// The archive.
        image: PathBuf,
        /// Only into the nodes of this cluster.
        #[arg(long)]
        cluster: Option<String>,
        #[command(flatten)]
        which: Which,
    },
    /// Show what components write: all logs by name, those of a cluster, or the end of one component's.
    Logs(logs::Logs),
    /// Drop all packets between two clusters.
    Cut {
        /// One cluster.
        a: String,
        /// The other.
        b: String,
        #[command(flatten)]
        which: Which,
    },
    /// Let packets between two clusters pass again.
    Heal {
        /// One cluster.
        a: String,
        /// The other.
        b: String,
        #[command(flatten)]
        which: Which,
    },
    /// Stop a component of a cluster.
    Stop(OneComponent),
    /// End a component of a cluster as a crash does.
    Kill(OneComponent),
    /// Start a component of a cluster that was stopped.
    Start(OneComponent),
    /// Clear a lab away, in whatever state it is.
    Down {
        /// Name of the lab.
        #[arg(conflicts_with = "all")]
        name: Option<String>,
        /// Clear all labs away, also those of running tests.
        #[arg(long)]
        all: bool,
    },
    /// Make all parts that are not in the cache, so that tests find them there: half an hour from nothing.
    Parts,
    /// Write the Go module and its sums with which another version of Kubernetes is built.
    Pin {
        /// The version, such as 1.35.2.
        version: String,
    },
}

/// Which lab a command is about.
#[derive(Args)]
pub(crate) struct Which {
    /// Name of the lab; not needed if there is only one.
    #[arg(long, env = "PORTOLAN_LAB", value_name = "NAME")]
    lab: Option<String>,
}

/// A component of a cluster.
#[derive(Args)]
pub(crate) struct OneComponent {
    /// Name of the cluster.
    cluster: String,
    /// Name of the component, such as kube-apiserver or kubelet.
    component: Component,
    #[command(flatten)]
    which: Which,
}

pub(crate) async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Up(up) => up::run(up).await?,
        Command::List => list::run()?,
        Command::Logs(logs) => logs::run(&logs)?,
        Command::Kubectl { cluster, args, which } => {
            let lab = which.attach()?;
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            return hand_over(lab.cluster(&cluster)?.kubectl_command(&args));
        }
        Command::Exec { node, command, which } => {
            let lab = which.attach()?;
            let mut nodes = lab.clusters().iter().flat_map(Cluster::nodes);
            let node = nodes
                .find(|each| each.name() == node)
                .with_context(|| format!("there is no node {node:?}"))?;
            let command: Vec<&str> = command.iter().map(String::as_str).collect();
            return hand_over(node.command(&command)?);
        }
        Command::Load { image, cluster, which } => {
            let lab = which.attach()?;
            match cluster {
                Some(cluster) => lab.cluster(&cluster)?.load_image(&image).await?,
                None => lab.load_image(&image).await?,
            }
        }
        Command::Cut { a, b, which } => which.attach()?.cut(&a, &b).await?,
        Command::Heal { a, b, which } => which.attach()?.heal(&a, &b).await?,
        Command::Stop(one) => one.which.attach()?.cluster(&one.cluster)?.stop(one.component).await?,
        Command::Kill(one) => one.which.attach()?.cluster(&one.cluster)?.kill(one.component).await?,
        Command::Start(one) => one.which.attach()?.cluster(&one.cluster)?.start(one.component).await?,
        Command::Down { name, all } => down(name, all)?,
        Command::Parts => ensure_all()?,
        Command::Pin { version } => {
            println!("pinned in {}", portolan_lab::parts::pin(&version)?.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Which {
    fn attach(&self) -> Result<Lab> {
        Lab::attach(&choose(self.lab.clone())?)
    }
}

/// The lab that is meant: the given one, the only one, or the one of the usual name.
fn choose(given: Option<String>) -> Result<String> {
    if let Some(name) = given {
        return Ok(name);
    }
    let names = state::names()?;
    match &names[..] {
        [] => bail!("there is no lab: start one with `cargo xtask lab up --clusters 2`"),
        [only] => Ok(only.clone()),
        several if several.iter().any(|name| name == DEFAULT_NAME) => Ok(DEFAULT_NAME.to_owned()),
        several => bail!("there are several labs ({}): say which one", several.join(", ")),
    }
}

/// The lab to clear away when none is named: never one that a running test still uses.
fn detached() -> Result<String> {
    let mut stay = Vec::new();
    for name in state::names()? {
        let used = state::read(&name)?.and_then(|lab| lab.owner).is_some_and(|owner| owner.is_alive());
        if !used {
            stay.push(name);
        }
    }
    match &stay[..] {
        [] => bail!("there is no lab but those of running tests: name one to clear it away"),
        [only] => Ok(only.clone()),
        several => bail!("there are several labs ({}): name one, or say --all", several.join(", ")),
    }
}

fn down(name: Option<String>, all: bool) -> Result<()> {
    let names = if all { state::names()? } else { vec![name.map_or_else(detached, Ok)?] };
    let mut failed = Vec::new();
    for name in names {
        match portolan_lab::down(&name) {
            Ok(()) => println!("lab {name} is down"),
            Err(error) => failed.push(format!("lab {name}: {error:#}")),
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("\n")) }
}

/// Runs a command on this terminal and ends with its exit code.
fn hand_over(mut command: std::process::Command) -> Result<ExitCode> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot run {program}"))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
