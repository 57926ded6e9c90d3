//! The serving certificate of a cluster, and the certificates that its callers show.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use portolan_runtime::{Clock, Seed};
use rcgen::PublicKeyData;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::time_provider::TimeProvider;
use rustls::{DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme};

use crate::pki::{Authority, CertificateError, CertificateTerms, Subject, crypto, key_pair};

/// The first address of services, under which pods know the API server.
const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);

/// What a server of this cluster shows on `address`, and how it asks for certificates.
pub(super) fn server_config(
    authority: &Authority,
    clock: Clock,
    seed: &Seed,
    address: IpAddr,
) -> Result<ServerConfig, CertificateError> {
    let key = key_pair(&seed.child("server"))?;
    let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
    let subject =
        Subject::server("kube-apiserver", &names, &[address, SERVICE.into()], key.subject_public_key_info());
    let serial = [1; 16];
    // Whatever the clocks of this world and of its clients show, they should meet.
    let terms = CertificateTerms {
        usages: &["digital signature", "server auth"],
        from: Timestamp::UNIX_EPOCH,
        until: Timestamp::MAX,
        serial,
    };
    let certificate = authority.sign(&subject, &terms)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let asking = Arc::new(AnyCertificate(authority.verifier().clone()));
    let mut config = ServerConfig::builder_with_details(crypto(), Arc::new(WorldTime(clock)))
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(asking)
        .with_single_cert(vec![certificate], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Time as this cluster sees it.
#[derive(Debug)]
struct WorldTime(Clock);

impl TimeProvider for WorldTime {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.now().as_second()).unwrap_or_default();
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

/// Lets every client in, with a certificate or without, if it has the key to what it shows. Whether that certificate
/// is one of this cluster's, and still good, is asked anew at every request.
#[derive(Debug)]
struct AnyCertificate(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
