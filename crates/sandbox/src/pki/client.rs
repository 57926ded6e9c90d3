//! Certificates in the hands of clients.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use portolan_runtime::Seed;
use rcgen::{KeyPair, PublicKeyData};
use rustls::pki_types::CertificateDer;
use x509_parser::pem::Pem;

use super::{Authority, CertificateError, CertificateTerms, Subject, key_pair};

/// A certificate with its key, as a kubeconfig holds them.
#[derive(Clone, Debug)]
pub struct ClientCertificate {
    /// The certificate, in PEM; those it was signed by may follow.
    pub certificate: String,
    /// The private key, in PEM.
    pub key: String,
}

/// The chain of certificates, if the key belongs to the first.
pub(crate) fn chain(shown: &ClientCertificate) -> Result<Arc<[CertificateDer<'static>]>, CertificateError> {
    let bad = |error: String| CertificateError::Text(format!("the certificate cannot be read: {error}"));
    let blocks: Vec<Pem> = Pem::iter_from_buffer(shown.certificate.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| bad(error.to_string()))?;
    let first = blocks.first().ok_or_else(|| bad("it has no PEM block".to_owned()))?;
    let parsed = first.parse_x509().map_err(|error| bad(error.to_string()))?;
    let key = KeyPair::from_pem(&shown.key)?;
    if parsed.public_key().raw != key.subject_public_key_info() {
        return Err(CertificateError::Text("the key does not belong to the certificate".to_owned()));
    }
    Ok(blocks.iter().map(|block| CertificateDer::from(block.contents.clone())).collect())
}

/// Makes a key from the seed and signs a certificate for it.
pub(crate) fn issue(
    authority: &Authority,
    user: &str,
    groups: &[&str],
    (now, life): (Timestamp, Duration),
    serial: [u8; 16],
    seed: &Seed,
) -> Result<ClientCertificate, CertificateError> {
    let key = key_pair(seed)?;
    let subject = Subject::user(user, groups, key.subject_public_key_info());
    let life = SignedDuration::try_from(life).unwrap_or(SignedDuration::MAX);
    let usages = &["digital signature", "client auth"];
    let until = now.saturating_add(life).unwrap_or(Timestamp::MAX);
    let terms = CertificateTerms { usages, from: now, until, serial };
    Ok(ClientCertificate { certificate: authority.sign_pem(&subject, &terms)?, key: key.serialize_pem() })
}
