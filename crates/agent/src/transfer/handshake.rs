//! Why a connection to or from the peer is not made.

use super::identity::IdentityError;
use rustls::{AlertDescription, CertificateError};
use std::io;
use std::time::Duration;

/// Why the handshake fails.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The other side is another peer.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// There is nobody to be accepted.
    #[error("the agent was told of no peer since it was started")]
    NoPeer,
    /// Its certificate has ended.
    #[error("the certificate of the other side has expired: renew it there")]
    Expired,
    /// Its certificate begins later.
    #[error("the certificate of the other side is not valid yet: compare the clocks of both nodes")]
    NotValidYet,
    /// Another authority signed its certificate.
    #[error(
        "the certificate of the other side is not signed by the peer's authority: exchange the authorities again"
    )]
    UnknownAuthority,
    /// It shows none.
    #[error("the other side shows no certificate: only agents of the peer may connect")]
    NoCertificate,
    /// Its certificate is not right otherwise.
    #[error("the certificate of the other side is refused ({0:?}): renew it there")]
    Certificate(CertificateError),
    /// The other side does not accept this side.
    #[error(
        "the other side refuses the certificate of this side ({0:?}): compare authority, peer name and validity"
    )]
    RefusedByPeer(AlertDescription),
    /// It takes too long.
    #[error("the handshake is not finished after {0:?}: check the network between the nodes")]
    Timeout(Duration),
    /// It is not TLS 1.3.
    #[error(
        "the handshake is not TLS 1.3 as agents speak it: check the address and the versions of both agents"
    )]
    Protocol(rustls::Error),
    /// The connection broke.
    #[error("the connection breaks in the handshake ({}): check the network between the nodes", .0.kind())]
    Io(io::Error),
}

impl HandshakeError {
    /// What the library told.
    pub(super) fn of(error: io::Error) -> Self {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()).cloned();
        match inner {
            None => Self::Io(error),
            Some(rustls::Error::NoCertificatesPresented) => Self::NoCertificate,
            Some(rustls::Error::AlertReceived(alert)) => Self::RefusedByPeer(alert),
            Some(rustls::Error::InvalidCertificate(error)) => Self::of_certificate(error),
            Some(error) => Self::Protocol(error),
        }
    }

    fn of_certificate(error: CertificateError) -> Self {
        if let CertificateError::Other(other) = &error
            && let Some(identity) = other.0.downcast_ref::<IdentityError>()
        {
            return Self::Identity(identity.clone());
        }
        match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Self::NotValidYet,
            // A bad signature: a certificate of another authority with the same name.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::UnknownAuthority,
            error => Self::Certificate(error),
        }
    }

    /// Whether another try would fail as well.
    pub(super) fn is_permanent(&self) -> bool {
        !matches!(self, Self::Timeout(_) | Self::Protocol(_) | Self::Io(_))
    }
}
