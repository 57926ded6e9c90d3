//! What a Secret says about the certificate that it holds.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::{SignedDuration, Timestamp};
use rcgen::{KeyPair, PublicKeyData};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

/// On the Secret: the user that the certificate is for.
const USER: &str = "portolan.dev/certificate-user";
/// On the Secret: when the certificate ends.
const EXPIRES: &str = "portolan.dev/expires-at";
/// On the Secret: when a new certificate is due.
const RENEW: &str = "portolan.dev/renew-certificate-at";
/// On the Secret: for how many seconds a certificate is asked for.
const LIFETIME: &str = "portolan.dev/certificate-lifetime-seconds";

/// What a Secret says about the certificate that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// The user that it is for.
    pub user: String,
    /// When it ends.
    pub expires: Timestamp,
    /// When a new one is due: at half its life, so that a cluster that is down for a while still finds it valid.
    pub renew: Timestamp,
    /// For how many seconds it was asked for.
    pub lifetime: i32,
}

impl CertificateFacts {
    /// Reads a certificate in PEM; it must be for that user and of this key. Signers are not trusted to have signed what was
    /// asked for, and a request by the same name may be another one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(pem: &str, user: &str, key: &KeyPair, lifetime: i32) -> Result<Self, String> {
        let der = CertificateDer::from_pem_slice(pem.as_bytes())
            .map_err(|error| format!("the certificate is not PEM: {error}"))?;
        let (_, read) = X509Certificate::from_der(&der)
            .map_err(|_| "the certificate that was signed cannot be read".to_owned())?;
        let names: Vec<&str> =
            read.subject().iter_common_name().filter_map(|name| name.as_str().ok()).collect();
        if names != [user] {
            return Err(format!("the certificate that was signed is for {names:?}, not for {user}"));
        }
        if read.public_key().raw != key.subject_public_key_info().as_slice() {
            return Err(format!("the certificate that was signed for {user} is of another key"));
        }
        let at = |seconds: i64| Timestamp::from_second(seconds).map_err(|error| error.to_string());
        let validity = read.validity();
        let (begins, expires) = (at(validity.not_before.timestamp())?, at(validity.not_after.timestamp())?);
        let half = SignedDuration::from_secs(expires.duration_since(begins).as_secs() / 2);
        let renew = begins.saturating_add(half).unwrap_or(expires);
        Ok(Self { user: user.to_owned(), expires, renew, lifetime })
    }

    /// As it stands on the Secret.
    #[must_use]
    pub fn annotations(&self) -> Value {
        json!({
            USER: self.user,
            EXPIRES: self.expires.to_string(),
            RENEW: self.renew.to_string(),
            LIFETIME: self.lifetime.to_string(),
        })
    }

    /// From the annotations of a Secret; none if it holds no certificate of our making.
    #[must_use]
    pub fn read(annotations: &BTreeMap<String, String>) -> Option<Self> {
        Some(Self {
            user: annotations.get(USER)?.clone(),
            expires: annotations.get(EXPIRES)?.parse().ok()?,
            renew: annotations.get(RENEW)?.parse().ok()?,
            lifetime: annotations.get(LIFETIME)?.parse().ok()?,
        })
    }
}

/// The certificates of an authority in PEM, as connections take them.
///
/// # Errors
/// It is not PEM.
pub(crate) fn der_of(pem: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|error| format!("its authority is not PEM: {error}"))?;
    Ok(all.into_iter().map(|each| each.as_ref().to_vec()).collect())
}

/// A certificate and its key as the user of a kubeconfig.
pub(crate) fn certificate_user(certificate: &str, key: &str) -> Value {
    json!({
        "client-certificate-data": BASE64_STANDARD.encode(certificate),
        "client-key-data": BASE64_STANDARD.encode(key),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType};

    const USER: &str = "portolan:tenant:3fa2bc91-1111-2222-3333-444455556666:abcdefgh23";

    fn signed(key: &KeyPair) -> String {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, USER);
        params.self_signed(key).unwrap().pem()
    }

    #[test]
    fn a_certificate_is_kept_only_with_the_key_that_it_is_of() {
        let (own, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        assert!(CertificateFacts::of(&signed(&own), USER, &own, 600).is_ok());
        let error = CertificateFacts::of(&signed(&other), USER, &own, 600).unwrap_err();
        assert!(error.contains("another key"), "{error}");
        let error = CertificateFacts::of(&signed(&own), "jane", &own, 600).unwrap_err();
        assert!(error.contains("jane"), "{error}");
    }
}
