//! Agents as processes on nodes of the lab.

use super::certificates::peers;
use anyhow::{Context, Result, anyhow, bail};
use portolan_agent::agent::DEFAULT_PORT;
use portolan_agent::session::Pod;
use portolan_core::migration::destination::DestinationStage;
use portolan_core::migration::source::SourceStage;
use portolan_core::migration::{Answer, DestinationOrder, SourceOrder};
use portolan_lab::{Cluster, Node};
use portolan_tests::migration::{Peer, Reply, Request, Start};
use serde::Serialize;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

const PROGRAM: &str = env!("CARGO_BIN_EXE_node-agent");

/// Longer than any answer takes: an agent answers between two actions.
const PATIENCE: Duration = Duration::from_secs(120);

/// How many lines of a log are shown.
const TAIL: usize = 30;

/// An agent on the node of a cluster.
pub(super) struct NodeAgent {
    node: String,
    /// It ends with its standard input.
    _process: Child,
    requests: ChildStdin,
    replies: Lines<BufReader<ChildStdout>>,
}

impl NodeAgent {
    async fn start(cluster: &Cluster) -> Result<Self> {
        let node = cluster.control_plane();
        fs::copy(PROGRAM, node.dir().join("node-agent")).context("cannot put the agent into the node")?;
        let log = File::create(log_of(node)).context("cannot make the agent's log")?;
        let mut command = Command::from(node.command(&["/lab/node-agent"])?);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
        let mut process = command.spawn().context("cannot start the agent")?;
        let requests = process.stdin.take().context("the agent has a standard input")?;
        let replies = process.stdout.take().context("the agent has a standard output")?;
        let replies = BufReader::new(replies).lines();
        let mut agent = Self { node: node.name().to_owned(), _process: process, requests, replies };
        let kubeconfig =
            fs::read_to_string(cluster.kubeconfig_path()).context("cannot read the kubeconfig")?;
        let start = Start { node: node.name().to_owned(), address: node.address().into(), kubeconfig };
        agent.say(&start).await?;
        Ok(agent)
    }

    async fn say(&mut self, what: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        self.requests.write_all(&line).await?;
        self.requests.flush().await.map_err(Into::into)
    }

    async fn ask(&mut self, request: &Request) -> Result<Reply> {
        let asked = async {
            self.say(request).await?;
            self.replies.next_line().await?.context("it has ended")
        };
        let reply = match timeout(PATIENCE, asked).await {
            Ok(reply) => reply,
            Err(_) => Err(anyhow!("no answer within {} s", PATIENCE.as_secs())),
        };
        let reply = reply.with_context(|| format!("the agent on node {}", self.node))?;
        serde_json::from_str(&reply).with_context(|| format!("the agent on node {} says {reply}", self.node))
    }

    async fn add_peer(&mut self, peer: Peer) -> Result<()> {
        match self.ask(&Request::AddPeer(Box::new(peer))).await? {
            Reply::Done => Ok(()),
            other => bail!("the agent on node {} did not add its peer: {other:?}", self.node),
        }
    }

    pub(super) async fn brief(&mut self, briefing: &Request) -> Result<()> {
        match self.ask(briefing).await? {
            Reply::Done => Ok(()),
            other => bail!("the agent on node {} was not briefed: {other:?}", self.node),
        }
    }

    pub(super) async fn order_source(
        &mut self,
        pod: &Pod,
        order: SourceOrder,
    ) -> Result<Answer<SourceStage>> {
        match self.ask(&Request::OrderSource { pod: pod.clone(), order }).await? {
            Reply::Source(report) => Ok(Answer::Report(report)),
            Reply::Failed(why) => Ok(self.silent(&why)),
            other => bail!("the agent on node {} answers {other:?}", self.node),
        }
    }

    pub(super) async fn order_destination(
        &mut self,
        pod: &Pod,
        order: DestinationOrder,
    ) -> Result<Answer<DestinationStage>> {
        match self.ask(&Request::OrderDestination { pod: pod.clone(), order }).await? {
            Reply::Destination(report) => Ok(Answer::Report(report)),
            Reply::Failed(why) => Ok(self.silent(&why)),
            other => bail!("the agent on node {} answers {other:?}", self.node),
        }
    }

    /// It could not take the order, which is given again.
    fn silent<Stage>(&self, why: &str) -> Answer<Stage> {
        eprintln!("the agent on node {} does not take an order: {why}", self.node);
        Answer::Silent
    }
}

/// The agents of a migration.
pub(super) struct Agents {
    pub(super) source: NodeAgent,
    pub(super) destination: NodeAgent,
    /// What the source calls the destination, and the other way round.
    pub(super) peers: [String; 2],
    /// Where the destination listens.
    pub(super) address: SocketAddr,
}

impl Agents {
    pub(super) async fn start(from: &Cluster, to: &Cluster) -> Result<Self> {
        let [at_source, at_destination] = peers(from.name(), to.name())?;
        let names = [at_source.name.clone(), at_destination.name.clone()];
        let (mut source, mut destination) = (NodeAgent::start(from).await?, NodeAgent::start(to).await?);
        source.add_peer(at_source).await?;
        destination.add_peer(at_destination).await?;
        let address = SocketAddr::new(to.control_plane().address().into(), DEFAULT_PORT);
        Ok(Self { source, destination, peers: names, address })
    }
}

fn log_of(node: &Node) -> PathBuf {
    node.dir().join("log/node-agent.log")
}

/// The last lines of the log of the agent on a node.
pub(super) fn log_tail(node: &Node) -> String {
    let text = fs::read_to_string(log_of(node)).unwrap_or_else(|error| error.to_string());
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL)..].join("\n")
}
