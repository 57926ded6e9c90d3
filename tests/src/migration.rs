//! What a test of live migrations says to an agent that runs as a process on a node of the lab, one JSON object a line.

use k8s_openapi::api::core::v1::Pod as PodObject;
use portolan_agent::session::Pod;
use portolan_core::migration::{DestinationOrder, DestinationReport, SourceOrder, SourceReport};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
pub struct Start {
    /// The name of the Node.
    pub node: String,
    /// The address of the node.
    pub address: IpAddr,
    /// The kubeconfig of its cluster.
    pub kubeconfig: String,
}

/// The peer of an agent, and what is shown to it, in PEM.
#[derive(Debug, Serialize, Deserialize)]
pub struct Peer {
    /// What the peer is called.
    pub name: String,
    /// The URI in its certificate.
    pub identity: String,
    /// The authority that has signed that.
    pub authority: String,
    /// The agent's own certificate.
    pub certificate: String,
    /// The agent's own key.
    pub key: String,
}

/// The transfer that both agents are told of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ticket {
    /// What its session is called.
    pub session: String,
    /// What entitles to it.
    pub secret: [u8; 32],
}

/// Each further line.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// Accept this peer.
    AddPeer(Box<Peer>),
    /// A pod is to leave.
    BriefSource {
        /// The UID of the migration.
        migration: String,
        /// The peer that it goes to.
        peer: String,
        /// Where that listens.
        address: SocketAddr,
        /// The transfer.
        ticket: Ticket,
    },
    /// A pod is to come.
    BriefDestination {
        /// The UID of the migration.
        migration: String,
        /// The peer that it comes from.
        peer: String,
        /// The transfer.
        ticket: Ticket,
        /// The pod at the source.
        pod: Box<PodObject>,
    },
    /// An order to the source.
    OrderSource {
        /// The pod.
        pod: Pod,
        /// The order.
        order: SourceOrder,
    },
    /// An order to the destination.
    OrderDestination {
        /// The pod.
        pod: Pod,
        /// The order.
        order: DestinationOrder,
    },
}

/// The answer to a request.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// It is done.
    Done,
    /// How far the source is.
    Source(SourceReport),
    /// How far the destination is.
    Destination(DestinationReport),
    /// It failed.
    Failed(String),
}
