//! The side that sends parts.

use super::backoff::Backoff;
use super::error::{Failure, SendError};
use super::frame::FRAME_BYTES;
use super::identity::PeerIdentity;
use super::pace::Pacer;
use super::progress::{PartProgress, Progress};
use super::send::Outgoing;
use super::session::hex;
use super::source::Source;
use super::stream::Connect;
use super::ticket::{SessionKey, Ticket};
use super::tls::{Credentials, CredentialsError};
use portolan_node::Name;
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_rustls::TlsConnector;

/// How parts are sent.
#[derive(Clone, Copy, Debug)]
pub struct SendOptions {
    /// Until when all parts have to be there.
    pub deadline: Instant,
    /// How many connections may be tried for each part.
    pub tries: u32,
    /// How long to wait between them.
    pub backoff: Backoff,
    /// How long a connection, a handshake and its answer may take each.
    pub handshake_timeout: Duration,
    /// How long nothing may move on a connection.
    pub idle_timeout: Duration,
    /// How many bytes a frame has, at most [`FRAME_BYTES`].
    pub frame_bytes: usize,
    /// How many parts are sent at the same time.
    pub connections: usize,
    /// How much all parts together may send; none for as much as they can.
    pub bytes_per_second: Option<NonZeroU64>,
}

impl SendOptions {
    /// The usual options, with a deadline.
    #[must_use]
    pub fn until(deadline: Instant) -> Self {
        Self {
            deadline,
            tries: 10,
            backoff: Backoff::default(),
            handshake_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(30),
            frame_bytes: FRAME_BYTES,
            connections: 4,
            bytes_per_second: None,
        }
    }
}

/// A part to send.
pub struct OutgoingPart {
    /// What it is called.
    pub name: Name,
    /// Its bytes.
    pub source: Arc<dyn Source>,
}

/// A part that the receiver has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentPart {
    /// Which one.
    pub name: Name,
    /// How many bytes it has.
    pub bytes: u64,
    /// Its SHA-256 sum, in hexadecimal digits.
    pub sha256: String,
}

/// Sends sessions to one peer.
pub struct Sender(Arc<Inner>);

struct Inner {
    tls: TlsConnector,
    peer: PeerIdentity,
    connect: Box<dyn Connect>,
    options: SendOptions,
}

impl Sender {
    /// A sender that connects as `connect` does; an address of a socket is a [`Connect`].
    ///
    /// # Errors
    /// The credentials cannot be used.
    pub fn new(
        credentials: &Credentials,
        connect: impl Connect,
        options: SendOptions,
    ) -> Result<Self, CredentialsError> {
        let (tls, peer) = (credentials.connector()?, credentials.peer().clone());
        Ok(Self(Arc::new(Inner { tls, peer, connect: Box::new(connect), options })))
    }

    /// Sends all parts of a session, each over its own connections. The first that fails ends the others. What the receiver has
    /// stays there, also if this is dropped: send the session again to go on.
    ///
    /// # Errors
    /// A part is refused, or does not arrive within the tries and the deadline.
    pub async fn send(
        &self,
        session: &SessionKey,
        ticket: &Ticket,
        parts: Vec<OutgoingPart>,
        progress: &Progress,
    ) -> Result<Vec<SentPart>, SendError> {
        let unique = parts.iter().map(|part| &part.name).collect::<BTreeSet<_>>().len();
        if parts.is_empty() || unique != parts.len() {
            return Err(SendError::Parts { session: session.clone() });
        }
        let options = &self.0.options;
        let pacer = options.bytes_per_second.map(|rate| Arc::new(Pacer::new(rate)));
        let connections = Arc::new(Semaphore::new(options.connections.clamp(1, Semaphore::MAX_PERMITS)));
        let mut tasks = JoinSet::new();
        for (number, part) in (0_u64..).zip(parts) {
            progress.record(&part.name, |part| *part = PartProgress::default());
            let outgoing = Outgoing {
                session: session.clone(),
                ticket: ticket.clone(),
                part: part.name,
                source: part.source,
                progress: progress.clone(),
                pacer: pacer.clone(),
                frame_bytes: options.frame_bytes.clamp(1, FRAME_BYTES),
                handshake_timeout: options.handshake_timeout,
                idle_timeout: options.idle_timeout,
            };
            let (inner, connections) = (Arc::clone(&self.0), Arc::clone(&connections));
            tasks.spawn(async move {
                // It is never closed.
                let _permit = connections.acquire_owned().await.ok();
                inner.part(number, outgoing).await
            });
        }
        let mut sent = Vec::new();
        while let Some(part) = tasks.join_next().await {
            sent.push(part.map_err(|_| SendError::Stopping { session: session.clone() })??);
        }
        sent.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(sent)
    }
}

impl Inner {
    /// Sends one part.
    async fn part(&self, number: u64, outgoing: Outgoing) -> Result<SentPart, SendError> {
        let SendOptions { deadline, tries: most, backoff, .. } = self.options;
        let mut tries = 0;
        loop {
            tries += 1;
            outgoing.progress.record(&outgoing.part, |part| part.tries = tries);
            let attempt = Box::pin(outgoing.attempt(self.connect.as_ref(), &self.tls));
            let mut failure = match timeout_at(deadline, attempt).await {
                Ok(Ok((bytes, sha256))) => return Ok(outgoing.sent(bytes, &hex(&sha256))),
                Ok(Err(failure)) => failure,
                Err(_) => Failure::Deadline,
            };
            if !failure.is_permanent() && tries < most {
                tracing::debug!(part = %outgoing.part, peer = %self.peer, tries, %failure, "a part is sent again");
                if timeout_at(deadline, sleep(backoff.pause(number, tries))).await.is_ok() {
                    continue;
                }
                failure = Failure::Deadline;
            }
            let (peer, failure) = (self.peer.clone(), Box::new(failure));
            return Err(SendError::Part { peer, part: outgoing.part, tries, most, failure });
        }
    }
}

impl Outgoing {
    /// The part is with the receiver.
    fn sent(&self, bytes: u64, sha256: &str) -> SentPart {
        self.progress.record(&self.part, |part| (part.acknowledged, part.whole) = (bytes, true));
        SentPart { name: self.part.clone(), bytes, sha256: sha256.to_owned() }
    }
}
