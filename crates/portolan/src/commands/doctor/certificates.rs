//! How long certificates are valid.

use super::report::Sheet;
use super::way::Way;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::{SignedDuration, Timestamp};
use kube::Config;
use portolan_core::doctor::{Certificate, Check, Evidence};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// An authority that is valid for longer is not worth a line.
const AUTHORITY_SOON: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Checks the certificate that a server showed, that of the caller, and the authorities if one ends soon.
pub(super) fn check(sheet: &Sheet, way: &Way, target: &str, shown: Option<&CertificateDer<'_>>) {
    let config = &way.config;
    let add =
        |certificate: Certificate| sheet.add(Check::Certificate, target, &Evidence::Certificate(certificate));
    let serving = shown.and_then(|shown| {
        let called = format!("serving certificate of {target}");
        read(
            shown,
            called,
            "renew the serving certificate of the API server (`kubeadm certs renew apiserver`)",
        )
    });
    serving.into_iter().for_each(add);
    let own = client(config).and_then(|own| {
        let called = format!("client certificate of {}", way.credential.called);
        read(&own, called, way.credential.renew)
    });
    own.into_iter().for_each(add);
    for authority in config.root_cert.iter().flatten() {
        let called = "authority in the kubeconfig".to_owned();
        let read = read(
            &CertificateDer::from(authority.as_slice()),
            called,
            "replace the authority of the cluster, and certificate-authority-data in the kubeconfigs for it",
        );
        let now = sheet.clock().now();
        let soon = |each: &Certificate| now < each.from || each.until.duration_since(now) < AUTHORITY_SOON;
        read.into_iter().filter(soon).for_each(add);
    }
}

/// From when and until when a certificate is valid; nothing if it cannot be read.
fn read(certificate: &CertificateDer<'_>, called: String, renew: &'static str) -> Option<Certificate> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let time = |seconds: i64| {
        let whole = seconds.clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
        Timestamp::from_second(whole).ok()
    };
    let validity = parsed.validity();
    let (from, until) = (time(validity.not_before.timestamp())?, time(validity.not_after.timestamp())?);
    Some(Certificate { called, from, until, renew })
}

/// The client certificate of a kubeconfig, if its user has one.
fn client(config: &Config) -> Option<CertificateDer<'static>> {
    let user = &config.auth_info;
    let pem = match (&user.client_certificate_data, &user.client_certificate) {
        (Some(data), _) => BASE64_STANDARD.decode(data).ok()?,
        (None, Some(file)) => std::fs::read(file).ok()?,
        (None, None) => return None,
    };
    CertificateDer::pem_slice_iter(&pem).next()?.ok()
}
