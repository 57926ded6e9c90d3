//! Mutual TLS 1.3 with exactly one peer.

use super::identity::PeerIdentity;
use super::only_peer::OnlyPeer;
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::CertifiedKey;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// Why no connections can be made with these certificates.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// Something is no PEM.
    #[error("the {what} is not PEM: give it as \"-----BEGIN\" blocks")]
    NotPem {
        /// What.
        what: &'static str,
    },
    /// There is none.
    #[error("no {what} is given: at least one is needed")]
    Missing {
        /// What.
        what: &'static str,
    },
    /// They do not belong together, or cannot be used.
    #[error(
        "the certificates cannot be used for TLS 1.3 ({0}): check that the key belongs to the certificate"
    )]
    Unusable(#[from] rustls::Error),
}

/// What this side shows, and whom it accepts.
#[derive(Clone)]
pub struct Credentials {
    chain: Vec<CertificateDer<'static>>,
    key: Arc<PrivateKeyDer<'static>>,
    authorities: Arc<RootCertStore>,
    peer: PeerIdentity,
    time: Arc<dyn TimeProvider>,
}

impl Credentials {
    /// From PEM: the own chain, the own key, and the authorities that may have signed the certificate of the peer. `time` is
    /// the time by which certificates are valid.
    ///
    /// # Errors
    /// Something is missing or is not PEM.
    pub fn from_pem(
        chain: &[u8],
        key: &[u8],
        authorities: &[u8],
        peer: PeerIdentity,
        time: Arc<dyn TimeProvider>,
    ) -> Result<Self, CredentialsError> {
        let read = |what, pem| -> Result<Vec<CertificateDer<'static>>, CredentialsError> {
            let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
            all.map_err(|_| CredentialsError::NotPem { what })
        };
        let chain = read("own certificate", chain)?;
        let authorities = read("certificate of the peer's authority", authorities)?;
        let key =
            PrivateKeyDer::from_pem_slice(key).map_err(|_| CredentialsError::NotPem { what: "own key" })?;
        Self::from_der(chain, key, authorities, peer, time)
    }

    /// As [`Credentials::from_pem`], from DER.
    ///
    /// # Errors
    /// Something is missing, or an authority cannot be read.
    pub fn from_der(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        authorities: Vec<CertificateDer<'static>>,
        peer: PeerIdentity,
        time: Arc<dyn TimeProvider>,
    ) -> Result<Self, CredentialsError> {
        if chain.is_empty() {
            return Err(CredentialsError::Missing { what: "own certificate" });
        }
        if authorities.is_empty() {
            return Err(CredentialsError::Missing { what: "certificate of the peer's authority" });
        }
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority)?;
        }
        Ok(Self { chain, key: Arc::new(key), authorities: Arc::new(roots), peer, time })
    }

    /// The peer that is accepted.
    #[must_use]
    pub fn peer(&self) -> &PeerIdentity {
        &self.peer
    }

    /// The time by which certificates are valid.
    pub(super) fn time(&self) -> Arc<dyn TimeProvider> {
        Arc::clone(&self.time)
    }

    /// What this side shows.
    pub(super) fn certified_key(&self, provider: &CryptoProvider) -> Result<CertifiedKey, CredentialsError> {
        Ok(CertifiedKey::from_der(self.chain.clone(), self.key.clone_key(), provider)?)
    }

    /// Connects to the peer.
    pub(super) fn connector(&self) -> Result<TlsConnector, CredentialsError> {
        let only = self.only_peer()?;
        let mut config =
            ClientConfig::builder_with_details(Arc::clone(&only.provider), Arc::clone(&self.time))
                .with_protocol_versions(&[&rustls::version::TLS13])?
                .dangerous()
                .with_custom_certificate_verifier(only)
                .with_client_auth_cert(self.chain.clone(), self.key.clone_key())?;
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        config.enable_early_data = false;
        Ok(TlsConnector::from(Arc::new(config)))
    }

    /// Checks what the peer shows.
    pub(super) fn only_peer(&self) -> Result<Arc<OnlyPeer>, CredentialsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let authorities = Arc::clone(&self.authorities);
        let clients = WebPkiClientVerifier::builder_with_provider(authorities, Arc::clone(&provider))
            .build()
            .map_err(|_| CredentialsError::Missing { what: "certificate of the peer's authority" })?;
        let (authorities, hints) = (Arc::clone(&self.authorities), self.authorities.subjects());
        Ok(Arc::new(OnlyPeer { peer: self.peer.clone(), authorities, provider, hints, clients }))
    }
}

/// The name that TLS wants; the peer is checked by [`PeerIdentity`].
pub(super) fn no_server_name() -> ServerName<'static> {
    ServerName::from(std::net::IpAddr::from(std::net::Ipv4Addr::UNSPECIFIED))
}
