//! Whom connections to the one address of an agent are accepted from.
//!
//! A connection does not say which peer it is from: the certificate that it shows does.

use super::only_peer::{AnyPeer, OnlyPeer};
use super::stream::Incoming;
use super::tls::{Credentials, CredentialsError};
use rustls::ServerConfig;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::time_provider::TimeProvider;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

/// The peers that are accepted, and what is shown to them.
pub(super) struct Door {
    pub(super) tls: TlsAcceptor,
    peers: Vec<(String, Arc<OnlyPeer>)>,
    time: Arc<dyn TimeProvider>,
}

impl Door {
    /// For these peers, the newest last. A peer may be there more than once, with other credentials. None for none.
    pub(super) fn new(peers: &[(String, Credentials)]) -> Result<Option<Self>, CredentialsError> {
        let Some((_, first)) = peers.first() else { return Ok(None) };
        let (time, provider) = (first.time(), Arc::clone(&first.only_peer()?.provider));
        let (mut known, mut chains) = (Vec::new(), Vec::new());
        for (name, credentials) in peers {
            let only = credentials.only_peer()?;
            chains.push(Chain::of(credentials, &only)?);
            known.push((name.clone(), only));
        }
        let all = known.iter().map(|(_, only)| Arc::clone(only)).collect();
        let mut config = ServerConfig::builder_with_details(provider, Arc::clone(&time))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(Arc::new(AnyPeer(all)))
            .with_cert_resolver(Arc::new(Chains(chains)));
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.max_early_data_size = 0;
        Ok(Some(Self { tls: TlsAcceptor::from(Arc::new(config)), peers: known, time }))
    }

    /// What the peers are called whose certificate the other side has shown.
    pub(super) fn names(&self, stream: &Incoming) -> Vec<String> {
        let (_, connection) = stream.get_ref();
        let Some((certificate, intermediates)) = connection.peer_certificates().and_then(<[_]>::split_first)
        else {
            return Vec::new();
        };
        let Some(now) = self.time.current_time() else { return Vec::new() };
        let is = |only: &OnlyPeer| only.verify_client_cert(certificate, intermediates, now).is_ok();
        self.peers.iter().filter(|(_, only)| is(only)).map(|(name, _)| name.clone()).collect()
    }

    /// Whom it is for, in an error.
    pub(super) fn shown(&self) -> String {
        match &self.peers[..] {
            [(_, only)] => only.peer.to_string(),
            peers => format!("peers, of which the agent was told {}", peers.len()),
        }
    }
}

/// The own certificate for one peer.
#[derive(Debug)]
struct Chain {
    /// The names of the authorities that have signed it, in DER.
    issuers: Vec<Vec<u8>>,
    key: Arc<CertifiedKey>,
}

impl Chain {
    fn of(credentials: &Credentials, only: &OnlyPeer) -> Result<Self, CredentialsError> {
        let key = credentials.certified_key(&only.provider)?;
        let read = key.cert.iter().filter_map(|der| X509Certificate::from_der(der.as_ref()).ok());
        let issuers = read.map(|(_, certificate)| certificate.issuer().as_raw().to_vec()).collect();
        Ok(Self { issuers, key: Arc::new(key) })
    }
}

/// The own certificates. Of those that the other side can check by the authorities that it names, the newest is shown.
#[derive(Debug)]
struct Chains(Vec<Chain>);

impl ResolvesServerCert for Chains {
    fn resolve(&self, client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let named = client.certificate_authorities().unwrap_or_default();
        let fits = |chain: &&Chain| {
            chain.issuers.iter().any(|issuer| named.iter().any(|name| name.as_ref() == issuer.as_slice()))
        };
        let chain = self.0.iter().rev().find(fits).or(self.0.last())?;
        Some(Arc::clone(&chain.key))
    }
}
