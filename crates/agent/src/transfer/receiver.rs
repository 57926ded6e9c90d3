//! The side that parts are sent to.

use super::error::{Failure, ReceiveError, SessionError};
use super::expected::{ExpectedSession, ReceivedPart};
use super::frame::{self, Frame, SMALL_FRAME_BYTES, VERSION};
use super::handshake::HandshakeError;
use super::identity::PeerIdentity;
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
use tokio_rustls::TlsAcceptor;

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
    /// How many sessions there may be.
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

/// Receives the sessions that it was told of, from one peer.
pub struct Receiver {
    tls: TlsAcceptor,
    peer: PeerIdentity,
    limits: ReceiverLimits,
    sessions: Mutex<BTreeMap<SessionKey, Arc<SessionState>>>,
    waiting: Arc<Waiting>,
}

impl Receiver {
    /// A receiver that admits no session yet.
    ///
    /// # Errors
    /// The credentials cannot be used.
    pub fn new(credentials: &Credentials, limits: ReceiverLimits) -> Result<Self, CredentialsError> {
        Ok(Self {
            tls: credentials.acceptor()?,
            peer: credentials.peer().clone(),
            limits,
            sessions: Mutex::default(),
            waiting: Arc::new(Waiting::new(limits.unauthenticated, limits.unauthenticated_per_address)),
        })
    }

    /// Admits a session. What is in its folder is gone on with: after a restart, admit sessions before connections are served,
    /// since senders give up if a session is unknown.
    ///
    /// # Errors
    /// It is admitted already, is not within the limits, or its folder cannot be read.
    pub async fn admit(&self, expected: ExpectedSession) -> Result<Session, SessionError> {
        let session = expected.key.clone();
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
        if sessions.contains_key(&session) {
            return Err(SessionError::Exists { session });
        }
        if sessions.len() >= self.limits.sessions {
            return Err(SessionError::TooMany { session, limit: self.limits.sessions });
        }
        sessions.insert(session, Arc::clone(&state));
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
        let mut stream = match timeout_at(deadline, self.tls.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(self.error(nobody(), HandshakeError::of(error).into())),
            Err(_) => return Err(self.error(nobody(), HandshakeError::Timeout(handshake_timeout).into())),
        };
        let opened = timeout_at(deadline, self.opened(&mut stream)).await;
        let (session, part) = match opened.unwrap_or(Err(Failure::Idle(handshake_timeout))) {
            Ok(opened) => opened,
            Err(failure) => {
                self.refuse(&mut stream, &failure).await;
                return Err(self.error(nobody(), failure));
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
                Err(self.error(format!("part {part} of {}", session.key), failure))
            }
        }
    }

    /// What the peer wants to send, if it may.
    async fn opened(&self, stream: &mut Incoming) -> Result<(Arc<SessionState>, Name), Failure> {
        frame::write(stream, &Frame::Ready { version: VERSION }).await?;
        let Frame::Open { ticket, session, part } = frame::read(stream, SMALL_FRAME_BYTES).await? else {
            return Err(Failure::Unexpected("a frame before the request"));
        };
        let session = self.find(&session, &ticket)?;
        session.slot(&part)?;
        Ok((session, part))
    }

    fn find(&self, key: &SessionKey, ticket: &Ticket) -> Result<Arc<SessionState>, Refusal> {
        let found = {
            let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.get(key).filter(|session| !session.is_over()).cloned()
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

    fn error(&self, subject: String, failure: Failure) -> ReceiveError {
        ReceiveError { peer: self.peer.clone(), subject, failure: Box::new(failure) }
    }
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
