//! The side that parts are sent to.

use super::door::Door;
use super::error::{Failure, ReceiveError, SessionError};
use super::expected::{ExpectedSession, ReceivedPart};
use super::frame::{self, Frame, SMALL_FRAME_BYTES, VERSION};
use super::handshake::HandshakeError;
use super::receive::receive;
use super::refusal::Refusal;
use super::session::{MOST_SYNC_BYTES, Session};
use super::session_state::SessionState;
use super::stream::{Incoming, Stream};
use super::ticket::{SessionKey, Ticket};
use super::tls::{Credentials, CredentialsError};
use super::waiting::{Place, Waiting};
use portolan_node::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// How long to wait if no connection can be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// How much a receiver lets others cost it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverLimits {
    /// How long the handshake and the request after it may take together.
    pub handshake_timeout: Duration,
    /// How long a connection may bring nothing.
    pub idle_timeout: Duration,
    /// How many connections there may be that have not shown certificate and ticket yet. With one more, the oldest of whoever has
    /// the most of them ends.
    pub unauthenticated: usize,
    /// How many of these may come from one address.
    pub unauthenticated_per_address: usize,
    /// How many sessions a peer may have.
    pub sessions: usize,
    /// How many parts a session may have.
    pub parts: usize,
}

impl Default for ReceiverLimits {
    fn default() -> Self {
        Self {
            handshake_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(30),
            unauthenticated: 32,
            unauthenticated_per_address: 8,
            sessions: 16,
            parts: 64,
        }
    }
}

/// Receives the sessions that it was told of, each from its peer, all at one address.
pub struct Receiver {
    door: Mutex<Option<Arc<Door>>>,
    limits: ReceiverLimits,
    /// By the name of their peer.
    sessions: Mutex<BTreeMap<(String, SessionKey), Arc<SessionState>>>,
    waiting: Arc<Waiting>,
}

impl Receiver {
    /// A receiver that knows no peer and admits no session yet.
    #[must_use]
    pub fn new(limits: ReceiverLimits) -> Self {
        let waiting = Arc::new(Waiting::new(limits.unauthenticated, limits.unauthenticated_per_address));
        Self { door: Mutex::default(), limits, sessions: Mutex::default(), waiting }
    }

    /// Accepts these peers from now on, by their names, the newest last. One that has renewed its credentials may be there with both.
    /// Connections that were accepted before go on.
    ///
    /// # Errors
    /// The credentials of one cannot be used. Then those before are accepted.
    pub fn accept_from(&self, peers: &[(String, Credentials)]) -> Result<(), CredentialsError> {
        let door = Door::new(peers)?.map(Arc::new);
        *self.door.lock().unwrap_or_else(PoisonError::into_inner) = door;
        Ok(())
    }

    fn door(&self) -> Option<Arc<Door>> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Admits a session. What is in its folder is gone on with: after a restart, admit sessions before connections are served,
    /// since senders give up if a session is unknown.
    ///
    /// # Errors
    /// It is admitted already, is not within the limits, or its folder cannot be read.
    pub async fn admit(&self, expected: ExpectedSession) -> Result<Session, SessionError> {
        let (session, peer) = (expected.key.clone(), expected.peer.clone());
        let (parts, limit) = (expected.parts.len(), self.limits.parts);
        let unique = expected.parts.iter().collect::<BTreeSet<_>>().len();
        if parts == 0 || parts > limit || unique != parts {
            return Err(SessionError::Parts { session, parts, limit });
        }
        let bytes = expected.limits.sync_bytes;
        if bytes == 0 || bytes > MOST_SYNC_BYTES {
            return Err(SessionError::SyncBytes { session, bytes, limit: MOST_SYNC_BYTES });
        }
        let state = tokio::task::spawn_blocking(move || SessionState::new(expected));
        let state = state.await.map_err(|_| SessionError::Stopping { session: session.clone() })??;
        let state = Arc::new(state);
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, session| !session.is_over());
        let key = (peer, session.clone());
        if sessions.contains_key(&key) {
            return Err(SessionError::Exists { session });
        }
        if sessions.values().filter(|other| other.peer == state.peer).count() >= self.limits.sessions {
            return Err(SessionError::TooMany { session, limit: self.limits.sessions });
        }
        sessions.insert(key, Arc::clone(&state));
        Ok(Session(state))
    }

    /// Serves connections until it is dropped, which ends them.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            match listener.accept().await {
                Ok((stream, address)) => {
                    // Without it frames only arrive later.
                    stream.set_nodelay(true).ok();
                    let place = self.waiting.enter(address.ip());
                    let (receiver, number) = (Arc::clone(&self), place.number());
                    let task = connections.spawn(async move {
                        report(receiver.connection(Box::new(stream), Some(place)).await);
                    });
                    self.waiting.begun(number, task);
                }
                Err(error) => {
                    tracing::warn!(kind = ?error.kind(), "no connection for a transfer can be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Receives one part over one connection. The place is given back once the peer has shown certificate and ticket.
    pub(super) async fn connection(
        &self,
        stream: Box<dyn Stream>,
        place: Option<Place>,
    ) -> Result<ReceivedPart, ReceiveError> {
        let ReceiverLimits { handshake_timeout, idle_timeout, .. } = self.limits;
        let nobody = || "a part".to_owned();
        let deadline = Instant::now() + handshake_timeout;
        let Some(door) = self.door() else {
            return Err(error("peers", nobody(), HandshakeError::NoPeer.into()));
        };
        let mut stream = match timeout_at(deadline, door.tls.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(why)) => return Err(error(&door.shown(), nobody(), HandshakeError::of(why).into())),
            Err(_) => {
                let late = HandshakeError::Timeout(handshake_timeout);
                return Err(error(&door.shown(), nobody(), late.into()));
            }
        };
        let names = door.names(&stream);
        let opened = timeout_at(deadline, self.opened(&mut stream, &names)).await;
        let (session, part) = match opened.unwrap_or(Err(Failure::Idle(handshake_timeout))) {
            Ok(opened) => opened,
            Err(failure) => {
                self.refuse(&mut stream, &failure).await;
                return Err(error(&door.shown(), nobody(), failure));
            }
        };
        drop(place);
        let received = Box::pin(receive(&mut stream, &session, &part, idle_timeout)).await;
        match received {
            Ok(received) => {
                // The part is there, whether or not the peer still listens.
                timeout(handshake_timeout, stream.shutdown()).await.ok();
                Ok(received)
            }
            Err(failure) => {
                self.refuse(&mut stream, &failure).await;
                let peer = format!("peer {}", session.peer);
                Err(error(&peer, format!("part {part} of {}", session.key), failure))
            }
        }
    }

    /// What a peer with one of these names wants to send, if it may.
    async fn opened(
        &self,
        stream: &mut Incoming,
        peers: &[String],
    ) -> Result<(Arc<SessionState>, Name), Failure> {
        frame::write(stream, &Frame::Ready { version: VERSION }).await?;
        let Frame::Open { ticket, session, part } = frame::read(stream, SMALL_FRAME_BYTES).await? else {
            return Err(Failure::Unexpected("a frame before the request"));
        };
        let session = self.find(peers, &session, &ticket)?;
        session.slot(&part)?;
        Ok((session, part))
    }

    fn find(
        &self,
        peers: &[String],
        key: &SessionKey,
        ticket: &Ticket,
    ) -> Result<Arc<SessionState>, Refusal> {
        let found = {
            let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            let mut of_peers = peers.iter().filter_map(|peer| sessions.get(&(peer.clone(), key.clone())));
            of_peers.find(|session| !session.is_over()).cloned()
        };
        // Compared also if there is no such session, which takes as long.
        let nobodys = Ticket::new([0; 32]);
        let same = found.as_ref().map_or(&nobodys, |session| &session.ticket).is(ticket);
        found.filter(|_| same).ok_or(Refusal::NotAdmitted)
    }

    /// Tells the peer why, and lets it read that: a connection that is closed with bytes to read would be reset.
    async fn refuse(&self, stream: &mut Incoming, failure: &Failure) {
        let Some(refusal) = failure.refusal() else { return };
        let told = async {
            if frame::write(stream, &Frame::Refused(refusal)).await.is_err()
                || stream.shutdown().await.is_err()
            {
                return;
            }
            let mut rest = vec![0; 16 * 1024];
            while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
        };
        timeout(self.limits.handshake_timeout, told).await.ok();
    }
}

fn error(peer: &str, subject: String, failure: Failure) -> ReceiveError {
    ReceiveError { peer: peer.to_owned(), subject, failure: Box::new(failure) }
}

fn report(received: Result<ReceivedPart, ReceiveError>) {
    match received {
        Ok(part) => tracing::info!(part = %part.name, bytes = part.bytes, "received a part of a checkpoint"),
        Err(error) => match *error.failure {
            Failure::Handshake(HandshakeError::Identity(_)) => tracing::warn!(%error, "refused a connection"),
            // Whoever reaches the address can cause these.
            Failure::Handshake(_) => tracing::debug!(%error, "refused a connection"),
            _ => tracing::warn!(%error, "a connection brought no part"),
        },
    }
}
