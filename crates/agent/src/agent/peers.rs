//! The agents of other clusters: what is shown to them, and where their checkpoints are received.

use crate::session::HandsError;
use crate::transfer::{Credentials, CredentialsError, Receiver, ReceiverLimits};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Transfers that have begun end with the credentials that they began with. They take minutes, and a peer's credentials stay
/// for hours, so the last ones before the present ones are enough.
const KEPT: usize = 2;

/// Why a peer cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// Its credentials cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// Nothing can be received at this address.
    #[error(
        "cannot listen at {address} for checkpoints of peer {peer} ({kind:?}): check that it is an address of the node"
    )]
    Listen {
        /// The peer.
        peer: String,
        /// The address.
        address: IpAddr,
        /// Why not.
        kind: io::ErrorKind,
    },
}

/// All peers. Copies show the same.
#[derive(Clone)]
pub(super) struct Peers {
    address: IpAddr,
    limits: ReceiverLimits,
    /// The present one of a peer last.
    all: Arc<Mutex<BTreeMap<String, Vec<Listening>>>>,
}

/// A peer with certain credentials. Nothing more is received from it when this is dropped.
struct Listening {
    credentials: Credentials,
    receiver: Arc<Receiver>,
    serving: JoinHandle<()>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Peers {
    pub(super) fn new(address: IpAddr, limits: ReceiverLimits) -> Self {
        Self { address, limits, all: Arc::default() }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Listening>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens for a peer, and answers where.
    pub(super) async fn add(&self, peer: &str, credentials: Credentials) -> Result<SocketAddr, PeerError> {
        let receiver = Arc::new(Receiver::new(&credentials, self.limits)?);
        let failed = |error: io::Error| PeerError::Listen {
            peer: peer.to_owned(),
            address: self.address,
            kind: error.kind(),
        };
        let listener = TcpListener::bind((self.address, 0)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let serving = tokio::spawn(Arc::clone(&receiver).serve(listener));
        let mut all = self.all();
        let kept = all.entry(peer.to_owned()).or_default();
        kept.push(Listening { credentials, receiver, serving });
        let surplus = kept.len().saturating_sub(KEPT);
        kept.drain(..surplus);
        Ok(address)
    }

    /// What to show to a peer, and whom to accept as it.
    pub(super) fn credentials(&self, peer: &str) -> Result<Credentials, HandsError> {
        let credentials =
            self.all().get(peer).and_then(|kept| kept.last()).map(|peer| peer.credentials.clone());
        credentials.ok_or_else(|| unknown(peer))
    }

    /// What receives the checkpoints of a peer.
    pub(super) fn receiver(&self, peer: &str) -> Result<Arc<Receiver>, HandsError> {
        let receiver =
            self.all().get(peer).and_then(|kept| kept.last()).map(|peer| Arc::clone(&peer.receiver));
        receiver.ok_or_else(|| unknown(peer))
    }
}

fn unknown(peer: &str) -> HandsError {
    HandsError::new(format!("the agent was not told of peer {peer} since it was started, and waits for that"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::PeerIdentity;
    use rcgen::{CertificateParams, KeyPair};
    use rustls::time_provider::DefaultTimeProvider;
    use std::net::Ipv4Addr;
    use tokio::net::TcpStream;
    use tokio::time::{Duration, sleep};

    fn credentials(peer: &str) -> Credentials {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap().pem();
        let (chain, key) = (certificate.as_bytes(), key.serialize_pem());
        let identity = PeerIdentity::CommonName(peer.to_owned());
        Credentials::from_pem(chain, key.as_bytes(), chain, identity, Arc::new(DefaultTimeProvider)).unwrap()
    }

    async fn is_refused(address: SocketAddr) -> bool {
        for _ in 0..100 {
            if TcpStream::connect(address).await.is_err() {
                return true;
            }
            sleep(Duration::from_millis(10)).await;
        }
        false
    }

    #[tokio::test]
    async fn the_newest_credentials_count_and_those_before_still_receive() {
        let peers = Peers::new(Ipv4Addr::LOCALHOST.into(), ReceiverLimits::default());
        assert!(peers.credentials("lille").is_err() && peers.receiver("lille").is_err());
        let first = peers.add("lille", credentials("first")).await.unwrap();
        let second = peers.add("lille", credentials("second")).await.unwrap();
        assert_ne!(first, second);
        let newest = PeerIdentity::CommonName("second".to_owned());
        assert_eq!(*peers.clone().credentials("lille").unwrap().peer(), newest);
        TcpStream::connect(first).await.unwrap();
        peers.add("lille", credentials("third")).await.unwrap();
        assert!(is_refused(first).await, "nothing is left of the first ones");
        TcpStream::connect(second).await.unwrap();
        assert!(peers.receiver("nice").err().unwrap().to_string().contains("peer nice"));
    }
}
