//! The authority and serving certificate of a cluster, from the seed.

use std::net::IpAddr;

use portolan_runtime::Seed;
use rand::Rng;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// What precedes the 32 bytes of an Ed25519 key in PKCS #8.
const ED25519: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// What a server shows to its clients.
pub(super) struct Identity {
    pub(super) authority: String,
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Identity {
    pub(super) fn new(seed: &Seed, address: IpAddr) -> Result<Self, rcgen::Error> {
        let authority_key = KeyPair::try_from(key_bytes(&seed.child("authority")))?;
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        authority.distinguished_name.push(DnType::CommonName, "kubernetes");
        let shown = authority.self_signed(&authority_key)?.pem();
        let issuer = Issuer::new(authority, authority_key);
        let key = key_bytes(&seed.child("server"));
        let names = vec!["localhost".to_owned(), "kubernetes".to_owned(), address.to_string()];
        let mut server = CertificateParams::new(names)?;
        server.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        let certificate = server.signed_by(&KeyPair::try_from(key.clone())?, &issuer)?.der().clone();
        Ok(Self { authority: shown, certificate, key })
    }

    pub(super) fn server_config(&self) -> Result<ServerConfig, rustls::Error> {
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.clone()));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn key_bytes(seed: &Seed) -> Vec<u8> {
    let mut secret = [0_u8; 32];
    seed.rng().fill_bytes(&mut secret);
    [ED25519.as_slice(), secret.as_slice()].concat()
}
