//! From when to when a credential is valid, as it says itself.
//!
//! Only told, never trusted: the member decides whether it accepts a credential.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use jiff::Timestamp;
use kube::config::Kubeconfig;
use serde_json::Value;

/// From when to when a credential is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// From when on, if it tells.
    pub begins: Option<Timestamp>,
    /// Until when.
    pub ends: Timestamp,
}

impl Validity {
    /// That of a token, or of the client certificate in a kubeconfig; nothing if it tells no end.
    pub(super) fn of(token: Option<&str>, kubeconfig: &Kubeconfig) -> Option<Self> {
        match token {
            Some(token) => Self::of_token(token),
            None => Self::of_certificate(kubeconfig),
        }
    }

    fn of_token(token: &str) -> Option<Self> {
        let claims = token.split('.').nth(1)?;
        let claims: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
        let time = |claim: &str| Timestamp::from_second(claims[claim].as_i64()?).ok();
        Some(Self { begins: time("iat").or_else(|| time("nbf")), ends: time("exp")? })
    }

    fn of_certificate(kubeconfig: &Kubeconfig) -> Option<Self> {
        let user = kubeconfig.auth_infos.first()?.auth_info.as_ref()?;
        let pem = BASE64_STANDARD.decode(user.client_certificate_data.as_ref()?).ok()?;
        let (_, pem) = x509_parser::pem::parse_x509_pem(&pem).ok()?;
        let certificate = pem.parse_x509().ok()?;
        let (begins, ends) = (certificate.validity().not_before, certificate.validity().not_after);
        Some(Self {
            begins: Timestamp::from_second(begins.timestamp()).ok(),
            ends: Timestamp::from_second(ends.timestamp()).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::config::{AuthInfo, NamedAuthInfo};
    use serde_json::json;

    #[test]
    fn a_token_tells_its_end_and_anything_else_tells_none() {
        let token = |claims: Value| format!("x.{}.y", BASE64_URL_SAFE_NO_PAD.encode(claims.to_string()));
        let of = |token: &str| Validity::of(Some(token), &Kubeconfig::default());
        let whole = of(&token(json!({"iat": 1_700_000_000, "exp": 1_800_000_000}))).unwrap();
        assert_eq!(whole.begins.map(Timestamp::as_second), Some(1_700_000_000));
        assert_eq!(whole.ends.as_second(), 1_800_000_000);
        assert_eq!(of(&token(json!({"exp": 5}))).map(|each| each.begins), Some(None));
        for other in
            [token(json!({})), token(json!({"exp": "soon"})), "opaque".to_owned(), "a.b.c".to_owned()]
        {
            assert_eq!(of(&other), None, "{other}");
        }
    }

    #[test]
    fn a_client_certificate_tells_from_when_to_when() {
        let mut params = rcgen::CertificateParams::default();
        params.not_before = rcgen::date_time_ymd(2027, 1, 1);
        params.not_after = rcgen::date_time_ymd(2027, 1, 11);
        let pem = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem();
        let auth =
            AuthInfo { client_certificate_data: Some(BASE64_STANDARD.encode(pem)), ..AuthInfo::default() };
        let user = NamedAuthInfo { name: "u".to_owned(), auth_info: Some(auth), ..NamedAuthInfo::default() };
        let kubeconfig = Kubeconfig { auth_infos: vec![user], ..Kubeconfig::default() };
        let validity = Validity::of(None, &kubeconfig).unwrap();
        assert_eq!(validity.begins, Some("2027-01-01T00:00:00Z".parse().unwrap()));
        assert_eq!(validity.ends, "2027-01-11T00:00:00Z".parse().unwrap());
    }
}
