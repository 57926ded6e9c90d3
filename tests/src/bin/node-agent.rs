//! An agent of live migrations on a node of the lab: it does what it is told on its standard input, and answers on its standard
//! output. It ends when nobody can tell it anything any more.

use anyhow::{Context, Result};
use jiff::Timestamp;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config as ClientConfig};
use portolan_agent::agent::{Agent, Config, DestinationBriefing, SourceBriefing, Transfer};
use portolan_agent::transfer::{Credentials, PeerIdentity, SessionLimits, Ticket as TransferTicket};
use portolan_node::Name;
use portolan_runtime::Clock;
use portolan_tests::migration::{Reply, Request, Start, Ticket};
use rustls::time_provider::DefaultTimeProvider;
use std::io::BufRead;
use std::sync::Arc;
use std::thread;
use tokio::sync::mpsc;

/// The disks of the lab are what is left of a developer's.
const STAYS_FREE: u64 = 64 << 20;

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
    let mut lines = lines();
    let first = lines.recv().await.context("nothing was said")?;
    let agent = Box::pin(start(serde_json::from_str(&first)?)).await?;
    while let Some(line) = lines.recv().await {
        let reply = match Box::pin(reply(&agent, serde_json::from_str(&line)?)).await {
            Ok(reply) => reply,
            Err(error) => Reply::Failed(format!("{error:#}")),
        };
        println!("{}", serde_json::to_string(&reply)?);
    }
    Ok(())
}

/// Reads on a thread of its own, which need not end before the process.
fn lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

async fn start(start: Start) -> Result<Agent> {
    let kubeconfig = Kubeconfig::from_yaml(&start.kubeconfig)?;
    let client = ClientConfig::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let mut config = Config::on_node(start.node, start.address);
    config.hands.stays_free = STAYS_FREE;
    let clock = Clock::starting_at(Timestamp::now());
    let (agent, broken) = Box::pin(Agent::start(config, Client::try_from(client)?, clock)).await?;
    anyhow::ensure!(broken.is_empty(), "the journal is not understood: {broken:?}");
    Ok(agent)
}

async fn reply(agent: &Agent, request: Request) -> Result<Reply> {
    Ok(match request {
        Request::AddPeer(peer) => {
            let [chain, key, authority] =
                [&peer.certificate, &peer.key, &peer.authority].map(|pem| pem.as_bytes());
            let (identity, time) = (PeerIdentity::Uri(peer.identity.clone()), Arc::new(DefaultTimeProvider));
            let credentials = Credentials::from_pem(chain, key, authority, identity, time)?;
            agent.add_peer(&peer.name, credentials)?;
            Reply::Done
        }
        Request::BriefSource { migration, peer, address, ticket } => {
            agent.brief_source(&migration, SourceBriefing { peer, address, transfer: transfer(&ticket)? });
            Reply::Done
        }
        Request::BriefDestination { migration, peer, ticket, pod } => {
            let (transfer, limits) = (transfer(&ticket)?, SessionLimits::default());
            agent.brief_destination(&migration, DestinationBriefing { peer, transfer, limits, pod });
            Reply::Done
        }
        Request::OrderSource { pod, order } => {
            Reply::Source(Box::pin(agent.order_source(&pod, &order)).await?)
        }
        Request::OrderDestination { pod, order } => {
            Reply::Destination(Box::pin(agent.order_destination(&pod, &order)).await?)
        }
    })
}

fn transfer(ticket: &Ticket) -> Result<Transfer> {
    let session = Name::new("session of a transfer", &ticket.session)?;
    Ok(Transfer { session, ticket: TransferTicket::new(ticket.secret) })
}
