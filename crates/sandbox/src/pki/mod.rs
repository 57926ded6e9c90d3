//! Certificates: the authority of a cluster, what it is asked to sign, and whom it knows by what it has signed.

mod authority;
mod client;
mod der;
mod key;
mod request;

pub(crate) use authority::{Authority, CertificateTerms, Subject};
pub use client::ClientCertificate;
pub(crate) use client::{chain, issue};
pub(crate) use key::{crypto, key_pair};
pub(crate) use request::{CertificateRequest, check_certificates};

/// Why a certificate could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The library that makes certificates refuses.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// The library that checks certificates refuses.
    #[error("cannot use a certificate: {0}")]
    Use(#[from] rustls::Error),
    /// The text is not what it should be.
    #[error("{0}")]
    Text(String),
}
