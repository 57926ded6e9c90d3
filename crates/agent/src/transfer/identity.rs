//! Who the other side has to be.

use rustls::pki_types::CertificateDer;
use std::fmt;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

/// How many names of a certificate a message shows.
const SHOWN_NAMES: usize = 4;
/// How many characters of a name a message shows.
const SHOWN_CHARS: usize = 128;

/// The name in a certificate by which exactly one peer is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerIdentity {
    /// The only URI among the subject alternative names, as of SPIFFE.
    Uri(String),
    /// One of the DNS names among the subject alternative names. Wildcards match only themselves.
    Dns(String),
    /// The only common name of the subject.
    CommonName(String),
}

impl fmt::Display for PeerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uri(name) => write!(f, "peer {name} (URI)"),
            Self::Dns(name) => write!(f, "peer {name} (DNS name)"),
            Self::CommonName(name) => write!(f, "peer {name} (common name)"),
        }
    }
}

/// The certificate is that of another peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the certificate is of {found}, and {expected} is expected: check which peer the session was agreed with"
)]
pub struct IdentityError {
    /// The peer that is accepted.
    pub expected: PeerIdentity,
    /// The names that the certificate has.
    pub found: String,
}

impl PeerIdentity {
    /// Checks that a certificate, whose signatures were checked before, is of this peer.
    ///
    /// # Errors
    /// It is of another one, or of none that can be read.
    pub(super) fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), IdentityError> {
        let Ok((_, read)) = X509Certificate::from_der(certificate.as_ref()) else {
            return Err(self.differs("a certificate that cannot be read".to_owned()));
        };
        let names = Names::of(&read);
        let same = match self {
            Self::Uri(name) => names.uris == [name.as_str()],
            Self::Dns(name) => names.dns.iter().any(|found| found.eq_ignore_ascii_case(name)),
            Self::CommonName(name) => names.common == [name.as_str()],
        };
        if same { Ok(()) } else { Err(self.differs(names.shown())) }
    }

    fn differs(&self, found: String) -> IdentityError {
        IdentityError { expected: self.clone(), found }
    }
}

struct Names<'a> {
    uris: Vec<&'a str>,
    dns: Vec<&'a str>,
    common: Vec<&'a str>,
}

impl<'a> Names<'a> {
    fn of(certificate: &'a X509Certificate<'_>) -> Self {
        let common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok()).collect();
        let mut names = Self { uris: Vec::new(), dns: Vec::new(), common };
        if let Ok(Some(alternative)) = certificate.subject_alternative_name() {
            for name in &alternative.value.general_names {
                match name {
                    GeneralName::URI(name) => names.uris.push(name),
                    GeneralName::DNSName(name) => names.dns.push(name),
                    _ => {}
                }
            }
        }
        names
    }

    fn shown(&self) -> String {
        let short = |name: &&str| format!("{:?}", name.chars().take(SHOWN_CHARS).collect::<String>());
        let all = self.uris.iter().chain(&self.dns).chain(&self.common);
        let shown: Vec<String> = all.take(SHOWN_NAMES).map(short).collect();
        if shown.is_empty() { "a peer without a name".to_owned() } else { shown.join(", ") }
    }
}
