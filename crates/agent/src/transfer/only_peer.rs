//! The check of certificates.

use super::identity::PeerIdentity;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, OtherError, RootCertStore, SignatureScheme,
};
use std::sync::Arc;

/// Accepts certificates that an authority of the peer has signed and that are of the peer.
#[derive(Debug)]
pub(super) struct OnlyPeer {
    pub(super) peer: PeerIdentity,
    pub(super) authorities: Arc<RootCertStore>,
    pub(super) provider: Arc<CryptoProvider>,
    /// The names of these authorities: they tell a server which of its certificates to show.
    pub(super) hints: Vec<DistinguishedName>,
    /// Checks chains of certificates that clients show.
    pub(super) clients: Arc<dyn ClientCertVerifier>,
}

impl OnlyPeer {
    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        self.peer
            .check(certificate)
            .map_err(|error| CertificateError::Other(OtherError(Arc::new(error))).into())
    }
}

impl ServerCertVerifier for OnlyPeer {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let read = ParsedCertificate::try_from(certificate)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&read, &self.authorities, intermediates, now, algorithms)?;
        self.check(certificate)?;
        Ok(ServerCertVerified::assertion())
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        Some(&self.hints)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for OnlyPeer {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // Whoever connects need not learn whose certificates are accepted.
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self.clients.verify_client_cert(certificate, intermediates, now)?;
        self.check(certificate)?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.clients.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.clients.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.clients.supported_verify_schemes()
    }
}

/// Accepts certificates of any of these peers. There is at least one.
#[derive(Debug)]
pub(super) struct AnyPeer(pub(super) Vec<Arc<OnlyPeer>>);

impl AnyPeer {
    fn first(&self) -> Result<&OnlyPeer, rustls::Error> {
        self.0.first().map(AsRef::as_ref).ok_or_else(|| CertificateError::UnknownIssuer.into())
    }
}

impl ClientCertVerifier for AnyPeer {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let mut refused = rustls::Error::from(CertificateError::UnknownIssuer);
        for peer in &self.0 {
            match peer.verify_client_cert(certificate, intermediates, now) {
                Ok(verified) => return Ok(verified),
                // What a peer's own authority has signed says more than that the others have not.
                Err(error) if is_of_another_authority(&refused) => refused = error,
                Err(_) => {}
            }
        }
        Err(refused)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.first()?.clients.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.first()?.clients.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.first().map(|peer| peer.clients.supported_verify_schemes()).unwrap_or_default()
    }
}

fn is_of_another_authority(error: &rustls::Error) -> bool {
    use CertificateError::{BadSignature, UnknownIssuer};
    matches!(error, rustls::Error::InvalidCertificate(UnknownIssuer | BadSignature))
}
