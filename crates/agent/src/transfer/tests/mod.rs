//! Two agents with real TLS, over loopback or in memory.

mod files;
mod peers;
mod refused;
mod resumed;
mod silent;
mod whole;

use super::door::Door;
use super::error::{Failure, SendError};
use super::frame::{self, Frame, SMALL_FRAME_BYTES};
use super::tls::no_server_name;
use super::{
    Backoff, Connect, Connecting, Credentials, CredentialsError, ExpectedSession, OutgoingPart, PeerIdentity,
    Progress, ReceiveError, ReceivedPart, Receiver, ReceiverLimits, Refusal, SendOptions, Sender, SentPart,
    SessionKey, SessionLimits, Stream, Ticket,
};
use portolan_node::Name;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, SanType,
    date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::time_provider::TimeProvider;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fs, io};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

/// In January 2026.
#[derive(Debug)]
struct FixedTime;

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(1_767_300_000)))
    }
}

/// The authority of a peer.
struct Authority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).unwrap().der().clone();
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    /// The credentials of `own`, which accepts `peer` if `others` has signed for it.
    fn credentials(&self, own: &PeerIdentity, peer: &PeerIdentity, others: &Self) -> Credentials {
        self.credentials_between(own, peer, others, 2025, 2030)
    }

    fn credentials_between(
        &self,
        own: &PeerIdentity,
        peer: &PeerIdentity,
        others: &Self,
        from: i32,
        until: i32,
    ) -> Credentials {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = DistinguishedName::new();
        match own {
            PeerIdentity::Uri(name) => {
                params.subject_alt_names.push(SanType::URI(name.as_str().try_into().unwrap()));
            }
            PeerIdentity::Dns(name) => {
                params.subject_alt_names.push(SanType::DnsName(name.as_str().try_into().unwrap()));
            }
            PeerIdentity::CommonName(name) => {
                params.distinguished_name.push(DnType::CommonName, name.as_str());
            }
        }
        (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(until, 1, 1));
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let authorities = vec![others.certificate.clone()];
        Credentials::from_der(vec![certificate], key, authorities, peer.clone(), Arc::new(FixedTime)).unwrap()
    }
}

fn source() -> PeerIdentity {
    PeerIdentity::Uri("spiffe://lille/portolan-agent".to_owned())
}

fn destination() -> PeerIdentity {
    PeerIdentity::Dns("agent.nice.example".to_owned())
}

/// What the receiver calls its peer.
const PEER: &str = "lille";

/// A receiver that accepts one peer.
fn receiver_of(credentials: &Credentials, limits: ReceiverLimits) -> Arc<Receiver> {
    let receiver = Receiver::new(limits);
    receiver.accept_from(&[(PEER.to_owned(), credentials.clone())]).unwrap();
    Arc::new(receiver)
}

/// What such a receiver accepts connections with.
fn acceptor(credentials: &Credentials) -> Result<TlsAcceptor, CredentialsError> {
    Ok(Door::new(&[(PEER.to_owned(), credentials.clone())])?.unwrap().tls)
}

/// Both agents and the folder of the receiving one.
struct World {
    authority: Authority,
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        Self { authority: Authority::new("nodes"), folder: tempfile::tempdir().unwrap() }
    }

    fn of_source(&self) -> Credentials {
        self.authority.credentials(&source(), &destination(), &self.authority)
    }

    fn of_destination(&self) -> Credentials {
        self.authority.credentials(&destination(), &source(), &self.authority)
    }

    fn receiver(&self) -> Arc<Receiver> {
        receiver_of(&self.of_destination(), ReceiverLimits::default())
    }

    fn expected(&self, parts: &[&str]) -> ExpectedSession {
        ExpectedSession {
            peer: PEER.to_owned(),
            key: key(),
            ticket: ticket(),
            parts: parts.iter().map(|part| name(part)).collect(),
            folder: self.folder.path().to_owned(),
            limits: SessionLimits { part_bytes: 4 << 20, session_bytes: 8 << 20, sync_bytes: 16 << 10 },
            deadline: Instant::now() + Duration::from_secs(3600),
        }
    }

    fn sender(&self, connect: impl Connect, options: SendOptions) -> Sender {
        Sender::new(&self.of_source(), connect, options).unwrap()
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A client of the source's agent after the handshake, and what becomes of its connection.
    async fn client(&self, receiver: &Arc<Receiver>) -> (Client, Served) {
        let (near, far) = duplex(1 << 20);
        let served = serve(receiver, Box::new(far));
        let tls = self.of_source().connector().unwrap();
        let mut client = tls.connect(no_server_name(), near).await.unwrap();
        let ready = frame::read(&mut client, SMALL_FRAME_BYTES).await.unwrap();
        assert!(matches!(ready, Frame::Ready { .. }), "{ready:?}");
        (client, served)
    }

    /// A client that may send the part, from its beginning.
    async fn client_of(&self, receiver: &Arc<Receiver>, part: &str) -> (Client, Served) {
        let (mut client, served) = self.client(receiver).await;
        frame::write(&mut client, &open(part)).await.unwrap();
        let resume = frame::read(&mut client, SMALL_FRAME_BYTES).await.unwrap();
        assert!(matches!(resume, Frame::Resume { .. }), "{resume:?}");
        frame::write(&mut client, &Frame::Begin { offset: 0 }).await.unwrap();
        (client, served)
    }
}

type Client = tokio_rustls::client::TlsStream<DuplexStream>;
type Served = JoinHandle<Result<ReceivedPart, ReceiveError>>;

fn serve(receiver: &Arc<Receiver>, stream: Box<dyn Stream>) -> Served {
    let receiver = Arc::clone(receiver);
    tokio::spawn(async move { receiver.connection(stream, None).await })
}

fn open(part: &str) -> Frame {
    Frame::Open { ticket: ticket(), session: key(), part: name(part) }
}

/// What the receiver refuses, after whatever it acknowledges.
async fn refusal(client: &mut Client) -> Refusal {
    loop {
        match frame::read(client, SMALL_FRAME_BYTES).await.unwrap() {
            Frame::Refused(refusal) => return refusal,
            Frame::Ack { .. } => {}
            frame => panic!("{frame:?}"),
        }
    }
}

/// What a sender failed by, and after how many tries.
fn failure(sent: Result<Vec<SentPart>, SendError>) -> (Failure, u32) {
    match sent {
        Err(SendError::Part { failure, tries, .. }) => (*failure, tries),
        sent => panic!("{sent:?}"),
    }
}

fn name(text: &str) -> Name {
    Name::new("part", text).unwrap()
}

fn key() -> SessionKey {
    SessionKey { migration: name("move-1"), session: name("s1") }
}

fn ticket() -> Ticket {
    Ticket::new([42; 32])
}

/// As many bytes as are asked for, with few repetitions.
fn bytes(count: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..count).map(next).collect()
}

fn part(name_of_part: &str, bytes: &[u8]) -> OutgoingPart {
    OutgoingPart { name: name(name_of_part), source: Arc::new(bytes.to_vec()) }
}

/// Frames of 4 KiB, one try, no pauses.
fn options() -> SendOptions {
    let backoff = Backoff { first: Duration::ZERO, ..Backoff::default() };
    let options = SendOptions::until(Instant::now() + Duration::from_secs(3600));
    SendOptions { tries: 1, backoff, frame_bytes: 4096, ..options }
}

/// Sends with the ticket and key of [`World::expected`].
async fn send(sender: &Sender, parts: Vec<OutgoingPart>) -> (Result<Vec<SentPart>, SendError>, Progress) {
    let progress = Progress::default();
    let sent = sender.send(&key(), &ticket(), parts, &progress).await;
    (sent, progress)
}

/// Connections to a receiver, each of which may be cut after some bytes.
struct Dial {
    receiver: Arc<Receiver>,
    loopback: bool,
    cut: Option<u64>,
    served: Mutex<Vec<Served>>,
}

impl Dial {
    fn new(receiver: &Arc<Receiver>) -> Self {
        Self { receiver: Arc::clone(receiver), loopback: false, cut: None, served: Mutex::default() }
    }

    /// What became of the connections.
    async fn served(&self) -> Vec<Result<ReceivedPart, ReceiveError>> {
        let served = std::mem::take(&mut *self.served.lock().unwrap());
        let mut outcomes = Vec::new();
        for outcome in served {
            outcomes.push(outcome.await.unwrap());
        }
        outcomes
    }
}

impl Connect for Arc<Dial> {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async move {
            let (near, far): (Box<dyn Stream>, Box<dyn Stream>) = if self.loopback {
                let listener = TcpListener::bind("127.0.0.1:0").await?;
                let address = listener.local_addr()?;
                let (near, (far, _)) = tokio::try_join!(TcpStream::connect(address), listener.accept())?;
                (Box::new(near), Box::new(far))
            } else {
                let (near, far) = duplex(64 << 10);
                (Box::new(near), Box::new(far))
            };
            self.served.lock().unwrap().push(serve(&self.receiver, far));
            let near: Box<dyn Stream> = match self.cut {
                Some(left) => Box::new(Cut { inner: near, left }),
                None => near,
            };
            Ok(near)
        })
    }
}

/// A connection that breaks once so many bytes were written.
struct Cut {
    inner: Box<dyn Stream>,
    left: u64,
}

impl AsyncRead for Cut {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left == 0 {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl AsyncWrite for Cut {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.left == 0 {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let most = usize::try_from(self.left).unwrap().min(buffer.len());
        let written = Pin::new(&mut self.inner).poll_write(context, &buffer[..most]);
        if let Poll::Ready(Ok(written)) = &written {
            self.left -= *written as u64;
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
