//! The authority of a cluster: it signs, and knows whom it has signed for.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use jiff::Timestamp;
use portolan_runtime::Seed;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, KeyUsagePurpose, SigningKey};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use sha2::{Digest, Sha256};
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::request::{CertificateRequest, common_name, organizations};
use super::{CertificateError, crypto, der, key_pair};
use crate::auth::User;

/// The key usages that requests name, with their bits.
const KEY_USAGES: &[(&str, usize)] = &[
    ("signing", 0),
    ("digital signature", 0),
    ("content commitment", 1),
    ("key encipherment", 2),
    ("data encipherment", 3),
    ("key agreement", 4),
    ("cert sign", 5),
    ("crl sign", 6),
    ("encipher only", 7),
    ("decipher only", 8),
];
/// The purposes that requests name, below 1.3.6.1.5.5.7.3.
const PURPOSES: &[(&str, u64)] = &[
    ("server auth", 1),
    ("client auth", 2),
    ("code signing", 3),
    ("email protection", 4),
    ("s/mime", 4),
    ("ipsec end system", 5),
    ("ipsec tunnel", 6),
    ("ipsec user", 7),
    ("timestamping", 8),
    ("ocsp signing", 9),
];
const OTHER_PURPOSES: &[(&str, &[u64])] = &[
    ("any", &[2, 5, 29, 37, 0]),
    ("microsoft sgc", &[1, 3, 6, 1, 4, 1, 311, 10, 3, 3]),
    ("netscape sgc", &[2, 16, 840, 1, 113_730, 4, 1]),
];
const ED25519: &[u64] = &[1, 3, 101, 112];
const TRUE: &[u8] = &[0x01, 0x01, 0xff];

/// Whom a certificate is for.
pub(crate) struct Subject {
    name: Vec<u8>,
    public_key: Vec<u8>,
    alternative_names: Option<Vec<u8>>,
}

impl Subject {
    /// A user with groups.
    pub(crate) fn user(name: &str, groups: &[&str], public_key: Vec<u8>) -> Self {
        let attribute = |kind: &[u64], value: &str| {
            der::set(&[&der::sequence(&[&der::identifier(kind), &der::utf8(value)])])
        };
        let mut parts: Vec<Vec<u8>> = groups.iter().map(|group| attribute(&[2, 5, 4, 10], group)).collect();
        parts.push(attribute(&[2, 5, 4, 3], name));
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        Self { name: der::sequence(&parts), public_key, alternative_names: None }
    }

    /// A server that is reached by these names and addresses.
    pub(crate) fn server(name: &str, dns: &[&str], addresses: &[IpAddr], public_key: Vec<u8>) -> Self {
        let mut names: Vec<Vec<u8>> = dns.iter().map(|name| der::tagged(0x82, &[name.as_bytes()])).collect();
        names.extend(addresses.iter().map(|address| match address {
            IpAddr::V4(four) => der::tagged(0x87, &[&four.octets()]),
            IpAddr::V6(six) => der::tagged(0x87, &[&six.octets()]),
        }));
        let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        Self { alternative_names: Some(der::sequence(&names)), ..Self::user(name, &[], public_key) }
    }
}

impl From<CertificateRequest> for Subject {
    fn from(request: CertificateRequest) -> Self {
        let CertificateRequest { subject, public_key, alternative_names, .. } = request;
        Self { name: subject, public_key, alternative_names }
    }
}

/// What a certificate is good for, and when.
pub(crate) struct CertificateTerms<'a> {
    pub(crate) usages: &'a [&'a str],
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
    pub(crate) serial: [u8; 16],
}

/// The authority of a cluster.
pub(crate) struct Authority {
    key: KeyPair,
    certificate: CertificateDer<'static>,
    subject: Vec<u8>,
    key_identifier: Option<Vec<u8>>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Authority {
    /// The authority that a seed stands for.
    pub(crate) fn new(seed: &Seed) -> Result<Self, CertificateError> {
        let key = key_pair(seed)?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, "kubernetes");
        let certificate = params.self_signed(&key)?.der().clone();
        let (subject, key_identifier) = {
            let (_, parsed) = X509Certificate::from_der(&certificate)
                .map_err(|error| CertificateError::Text(format!("own certificate: {error}")))?;
            let identifier = parsed.extensions().iter().find_map(|found| match found.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(identifier) => Some(identifier.0.to_vec()),
                _ => None,
            });
            (parsed.subject().as_raw().to_vec(), identifier)
        };
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone())?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), crypto())
            .build()
            .map_err(|error| CertificateError::Text(format!("own certificate: {error}")))?;
        Ok(Self { key, certificate, subject, key_identifier, verifier })
    }

    /// Its own certificate, in PEM.
    pub(crate) fn pem(&self) -> String {
        pem(&self.certificate)
    }

    /// Checks chains of certificates that lead here.
    pub(crate) fn verifier(&self) -> &Arc<dyn ClientCertVerifier> {
        &self.verifier
    }

    /// Signs.
    pub(crate) fn sign(
        &self,
        subject: &Subject,
        terms: &CertificateTerms<'_>,
    ) -> Result<CertificateDer<'static>, CertificateError> {
        let algorithm = der::sequence(&[&der::identifier(ED25519)]);
        let extensions = self.extensions(subject, terms.usages);
        let extensions: Vec<&[u8]> = extensions.iter().map(Vec::as_slice).collect();
        // The libraries that check certificates know no time before 1970.
        let from = terms.from.max(Timestamp::UNIX_EPOCH);
        let content = der::sequence(&[
            &der::tagged(0xa0, &[&der::unsigned(&[2])]),
            &der::unsigned(&terms.serial),
            &algorithm,
            &self.subject,
            &der::sequence(&[&der::time(from), &der::time(terms.until)]),
            &subject.name,
            &subject.public_key,
            &der::tagged(0xa3, &[&der::sequence(&extensions)]),
        ]);
        let signature = self.key.sign(&content)?;
        Ok(der::sequence(&[&content, &algorithm, &der::bits(&signature)]).into())
    }

    /// Signs, and writes the certificate in PEM.
    pub(crate) fn sign_pem(
        &self,
        subject: &Subject,
        terms: &CertificateTerms<'_>,
    ) -> Result<String, CertificateError> {
        Ok(pem(&self.sign(subject, terms)?))
    }

    fn extensions(&self, subject: &Subject, usages: &[&str]) -> Vec<Vec<u8>> {
        let named = |list: &[u64]| der::identifier(list);
        let critical = |id: &[u64], value: &[u8]| der::sequence(&[&named(id), TRUE, &der::octets(value)]);
        let plain = |id: &[u64], value: &[u8]| der::sequence(&[&named(id), &der::octets(value)]);
        let mut out = Vec::new();
        let wanted = |name: &str| usages.contains(&name);
        let bits: Vec<usize> =
            KEY_USAGES.iter().filter(|(name, _)| wanted(name)).map(|(_, bit)| *bit).collect();
        if !bits.is_empty() {
            out.push(critical(&[2, 5, 29, 15], &der::flags(&bits)));
        }
        let mut purposes: Vec<Vec<u8>> = PURPOSES
            .iter()
            .filter(|(name, _)| wanted(name))
            .map(|(_, last)| named(&[1, 3, 6, 1, 5, 5, 7, 3, *last]))
            .chain(OTHER_PURPOSES.iter().filter(|(name, _)| wanted(name)).map(|(_, id)| named(id)))
            .collect();
        purposes.dedup();
        if !purposes.is_empty() {
            let purposes: Vec<&[u8]> = purposes.iter().map(Vec::as_slice).collect();
            out.push(plain(&[2, 5, 29, 37], &der::sequence(&purposes)));
        }
        out.push(critical(&[2, 5, 29, 19], &der::sequence(&[])));
        if let Some(identifier) = &self.key_identifier {
            out.push(plain(&[2, 5, 29, 35], &der::sequence(&[&der::tagged(0x80, &[identifier])])));
        }
        if let Some(names) = &subject.alternative_names {
            out.push(plain(&[2, 5, 29, 17], names));
        }
        out
    }

    /// Who shows a chain of certificates: the common name is the user, organisations are groups.
    pub(crate) fn user_of(
        &self,
        chain: &[CertificateDer<'_>],
        now: Timestamp,
    ) -> Result<User, CertificateError> {
        let (first, rest) =
            chain.split_first().ok_or_else(|| CertificateError::Text("no certificate".to_owned()))?;
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        self.verifier.verify_client_cert(first, rest, now)?;
        let (_, parsed) = X509Certificate::from_der(first)
            .map_err(|error| CertificateError::Text(format!("malformed certificate: {error}")))?;
        let name = common_name(parsed.subject());
        if name.is_empty() {
            return Err(CertificateError::Text("the certificate has no common name".to_owned()));
        }
        let fingerprint: String = Sha256::digest(first).iter().map(|byte| format!("{byte:02x}")).collect();
        let mut user = organizations(parsed.subject()).into_iter().fold(User::named(name), User::group);
        user.extra.insert(
            "authentication.kubernetes.io/credential-id".to_owned(),
            vec![format!("X509SHA256={fingerprint}")],
        );
        Ok(user)
    }
}

fn pem(certificate: &CertificateDer<'_>) -> String {
    let encoded = BASE64.encode(certificate);
    let mut out = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for (index, letter) in encoded.chars().enumerate() {
        if index > 0 && index % 64 == 0 {
            out.push('\n');
        }
        out.push(letter);
    }
    out.push_str("\n-----END CERTIFICATE-----\n");
    out
}
