//! The agent of a node: sessions, hands and transfers, tied together.
//!
//! An [`Agent`] is told three kinds of things:
//!
//! - **peers** ([`Agent::add_peer`]): the agents of another cluster, with the certificates of the peering. All of them reach it at
//!   one address, [`Config::port`] of the node, so that a firewall can name it;
//! - **briefings** ([`Agent::brief_source`], [`Agent::brief_destination`]): what only whoever orders a migration knows, such as
//!   the ticket of the transfer, the address of the other agent and the pod. They are kept in memory: an agent that was
//!   restarted is told them again, and its sessions wait for that;
//! - **orders** ([`Agent::order_source`], [`Agent::order_destination`]): how far a session is to go.

mod briefing;
mod config;
mod movable;
mod peers;
mod pod_state;
mod pods;
mod restored_pod;
mod tickets;

pub use briefing::{DestinationBriefing, SourceBriefing, Transfer};
pub use config::{Config, DEFAULT_PORT};
pub use movable::RUNTIME_CLASS;
pub use peers::ListenError;
pub use restored_pod::COMMITTED;

use crate::hands::{DestinationNode, SourceNode};
use crate::session::{Journal, JournalError, Pod, Role, SessionError, Sessions};
use crate::transfer::{Credentials, CredentialsError};
use briefing::Briefings;
use kube::Client;
use peers::Peers;
use pods::ClusterPods;
use portolan_core::migration::{DestinationOrder, DestinationReport, Report, SourceOrder, SourceReport};
use portolan_runtime::Clock;
use std::net::SocketAddr;
use tickets::Tickets;

type NodeSessions = Sessions<SourceNode<ClusterPods, Tickets>, DestinationNode<ClusterPods, Tickets>>;

/// Why an agent cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The journal cannot be opened.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Peers cannot reach it.
    #[error(transparent)]
    Listen(#[from] ListenError),
}

/// The agent of a node. When this is dropped its sessions stop where they are, and go on when another one is started.
pub struct Agent {
    sessions: NodeSessions,
    briefings: Briefings,
    peers: Peers,
}

impl Agent {
    /// Starts the agent, and lets the sessions of its journal go on. `client` is one of its own cluster.
    ///
    /// The files of the journal that are not understood are returned too, as by [`Sessions::open`].
    ///
    /// # Errors
    /// The journal cannot be opened, or nothing can be received at the address of the node.
    pub async fn start(
        config: Config,
        client: Client,
        clock: Clock,
    ) -> Result<(Self, Vec<JournalError>), StartError> {
        let Config { node, address, port, journal, hands, sessions: settings, receiver } = config;
        let peers = Peers::listen((address, port).into(), receiver).await?;
        let briefings = Briefings::default();
        let pods =
            |role| ClusterPods::new(client.clone(), node.clone(), role, briefings.clone(), clock.clone());
        let tickets = Tickets::new(briefings.clone(), peers.clone());
        let source = SourceNode::new(hands.clone(), pods(Role::Source), tickets.clone());
        let destination = DestinationNode::new(hands, pods(Role::Destination), tickets);
        let opened = Sessions::open(Journal::new(journal), source, destination, clock, settings);
        let (sessions, broken) = Box::pin(opened).await?;
        Ok((Self { sessions, briefings, peers }, broken))
    }

    /// Where peers reach it.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.peers.address()
    }

    /// Accepts the checkpoints of a peer, which is known by its certificate. New credentials of a peer count for the transfers that
    /// begin from then on; the ones before are still accepted.
    ///
    /// # Errors
    /// The credentials cannot be used.
    pub fn add_peer(&self, name: &str, credentials: Credentials) -> Result<(), CredentialsError> {
        self.peers.add(name, credentials)
    }

    /// Tells where the pod of a migration goes, whose UID this is. It counts until the session of that migration is over.
    pub fn brief_source(&self, migration: &str, briefing: SourceBriefing) {
        self.briefings.set_source(migration, briefing);
    }

    /// Tells which pod comes in a migration, whose UID this is. It counts until the session of that migration is over.
    pub fn brief_destination(&self, migration: &str, briefing: DestinationBriefing) {
        self.briefings.set_destination(migration, briefing);
    }

    /// As [`Sessions::order_source`].
    ///
    /// # Errors
    /// As [`Sessions::order_source`].
    pub async fn order_source(&self, pod: &Pod, order: &SourceOrder) -> Result<SourceReport, SessionError> {
        let report = Box::pin(self.sessions.order_source(pod, order)).await?;
        if matches!(report, Report::NoRecord { .. }) && self.sessions.source_report(pod).is_none() {
            self.briefings.remove_source(&order.migration);
        }
        Ok(report)
    }

    /// As [`Sessions::order_destination`].
    ///
    /// # Errors
    /// As [`Sessions::order_destination`].
    pub async fn order_destination(
        &self,
        pod: &Pod,
        order: &DestinationOrder,
    ) -> Result<DestinationReport, SessionError> {
        let report = Box::pin(self.sessions.order_destination(pod, order)).await?;
        if matches!(report, Report::NoRecord { .. }) && self.sessions.destination_report(pod).is_none() {
            self.briefings.remove_destination(&order.migration);
        }
        Ok(report)
    }

    /// The pods that have a session, with the role that this node has for each.
    #[must_use]
    pub fn pods(&self) -> Vec<(Role, Pod)> {
        self.sessions.pods()
    }
}
