//! The agents of other clusters: what is shown to them, and where their checkpoints are received.

use crate::session::HandsError;
use crate::transfer::{Credentials, CredentialsError, Receiver, ReceiverLimits};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A peer that renews its certificate may still connect with the one before for a while.
const KEPT: usize = 2;

/// Nothing can be received at an address.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot listen at {address} for the checkpoints of peers ({kind:?}): check that it is an address of the node, and that no other \
     program has its port"
)]
pub struct ListenError {
    /// The address.
    pub address: SocketAddr,
    /// Why not.
    pub kind: io::ErrorKind,
}

/// All peers, at one address. Copies show the same.
#[derive(Clone)]
pub(super) struct Peers {
    address: SocketAddr,
    receiver: Arc<Receiver>,
    _serving: Arc<Serving>,
    /// The newest credentials last.
    all: Arc<Mutex<Vec<(String, Credentials)>>>,
}

/// Nothing more is received when this is dropped.
struct Serving(JoinHandle<()>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Peers {
    /// Listens for peers, of which none is accepted yet.
    pub(super) async fn listen(address: SocketAddr, limits: ReceiverLimits) -> Result<Self, ListenError> {
        let failed = |error: io::Error| ListenError { address, kind: error.kind() };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let receiver = Arc::new(Receiver::new(limits));
        let _serving = Arc::new(Serving(tokio::spawn(Arc::clone(&receiver).serve(listener))));
        Ok(Self { address, receiver, _serving, all: Arc::default() })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    fn all(&self) -> MutexGuard<'_, Vec<(String, Credentials)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts a peer, or other credentials of it.
    pub(super) fn add(&self, peer: &str, credentials: Credentials) -> Result<(), CredentialsError> {
        let mut all = self.all();
        let mut next = all.clone();
        next.push((peer.to_owned(), credentials));
        let mut surplus = next.iter().filter(|(name, _)| name == peer).count().saturating_sub(KEPT);
        next.retain(|(name, _)| {
            let drops = surplus > 0 && name == peer;
            surplus -= usize::from(drops);
            !drops
        });
        self.receiver.accept_from(&next)?;
        *all = next;
        Ok(())
    }

    /// What to show to a peer, and whom to accept as it.
    pub(super) fn credentials(&self, peer: &str) -> Result<Credentials, HandsError> {
        let all = self.all();
        let newest = all.iter().rev().find(|(name, _)| name == peer);
        newest.map(|(_, credentials)| credentials.clone()).ok_or_else(|| unknown(peer))
    }

    /// What receives the checkpoints of a peer.
    pub(super) fn receiver(&self, peer: &str) -> Result<Arc<Receiver>, HandsError> {
        self.credentials(peer).map(|_| Arc::clone(&self.receiver))
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

    async fn listen(port: u16) -> Result<Peers, ListenError> {
        Peers::listen((Ipv4Addr::LOCALHOST, port).into(), ReceiverLimits::default()).await
    }

    #[tokio::test]
    async fn all_peers_connect_to_one_address_that_a_restart_does_not_change() {
        let peers = listen(0).await.unwrap();
        let address = peers.address();
        for peer in ["lille", "nice", "lille"] {
            peers.add(peer, credentials(peer)).unwrap();
            assert_eq!(peers.address(), address);
        }
        TcpStream::connect(address).await.unwrap();
        let error = listen(address.port()).await.err().unwrap().to_string();
        assert!(error.contains(&address.to_string()) && error.contains("AddrInUse"), "{error}");
        drop(peers);
        assert!(is_refused(address).await, "nothing is left of it");
        assert_eq!(listen(address.port()).await.unwrap().address(), address);
    }

    #[tokio::test]
    async fn the_newest_credentials_count_and_those_before_are_still_accepted() {
        let peers = listen(0).await.unwrap();
        assert!(peers.credentials("lille").is_err() && peers.receiver("lille").is_err());
        peers.add("nice", credentials("nice")).unwrap();
        for renewed in ["first", "second", "third"] {
            peers.add("lille", credentials(renewed)).unwrap();
            let newest = PeerIdentity::CommonName(renewed.to_owned());
            assert_eq!(*peers.clone().credentials("lille").unwrap().peer(), newest);
        }
        let all = peers.all();
        let kept = all.iter().map(|(name, credentials)| (name.as_str(), credentials.peer().to_string()));
        let kept: Vec<_> = kept.collect();
        let name = |name: &str| format!("peer {name} (common name)");
        assert_eq!(kept, [("nice", name("nice")), ("lille", name("second")), ("lille", name("third"))]);
        drop(all);
        assert!(peers.receiver("metz").err().unwrap().to_string().contains("peer metz"));
    }
}
