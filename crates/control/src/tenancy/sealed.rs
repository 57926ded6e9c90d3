//! A token on the request of a consumer: stated for which key, sealed, and opened.

use super::TenancyError;
use crate::fleet::TokenClaims;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use portolan_core::tenancy::names::tenant_account_user;
use portolan_core::tenancy::{NoToken, OpeningKey, SealingKey};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

/// On the request of a consumer: the key to which a token would be sealed, in a statement that is signed by the key of the
/// request.
const STATEMENT: &str = "portolan.dev/sealing-key";
/// On the request of a consumer: a token that is sealed to that key.
const SEALED: &str = "portolan.dev/sealed-token";
/// On the request of a consumer: when that token ends.
const SEALED_UNTIL: &str = "portolan.dev/sealed-token-expires-at";

/// A token that ends sooner is replaced: its consumer could not do anything with it.
const LEFT: SignedDuration = SignedDuration::from_mins(10);

/// The key by which a consumer opens its token. It follows from that of its request.
pub(super) fn opening_key(key: &KeyPair) -> OpeningKey {
    OpeningKey::of(&key.serialize_der())
}

/// States the key to which a token may be sealed, on the request of a consumer.
pub(super) fn state(
    request: &mut CertificateSigningRequest,
    key: &KeyPair,
    invitation: &str,
) -> Result<(), TenancyError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, invitation);
    params.distinguished_name.push(DnType::CommonName, opening_key(key).public().common_name());
    let made = params.serialize_request(key).and_then(|request| request.pem());
    let statement =
        made.map_err(|error| TenancyError::Key { what: "statement about a key", why: error.to_string() })?;
    request.metadata.annotations.get_or_insert_default().insert(STATEMENT.to_owned(), statement);
    Ok(())
}

/// The key to which a token for the consumer of a request is sealed, if whoever made the request has stated one. The digest is
/// that of the key that was accepted.
pub(super) fn stated(
    request: &CertificateSigningRequest,
    invitation: &str,
    key_digest: Option<&str>,
) -> Result<SealingKey, NoToken> {
    let statement = annotation(request, STATEMENT).ok_or(NoToken::NotStated)?;
    let digest = key_digest.ok_or(NoToken::NotStated)?;
    SealingKey::stated(statement.as_bytes(), invitation, digest)
        .map_err(|error| NoToken::Unusable(error.to_string()))
}

/// What is written on the request of a consumer.
pub(super) fn annotations(sealed: &str, expires: Timestamp) -> Value {
    json!({ SEALED: sealed, SEALED_UNTIL: expires.to_string() })
}

/// Until when the token on a request is worth fetching.
pub(super) fn fresh_until(request: &CertificateSigningRequest) -> Option<Timestamp> {
    let expires: Timestamp = annotation(request, SEALED_UNTIL)?.parse().ok()?;
    expires.checked_sub(LEFT).ok()
}

/// The token that was sealed for this consumer. Whoever has the line could have written one there while nobody had used it: only
/// a token of the account in the namespace of this tenant counts, and nobody else has one.
pub(super) fn opened(
    request: &CertificateSigningRequest,
    key: &OpeningKey,
    invitation: &str,
    tenant_namespace: &str,
) -> Option<String> {
    let token = key.open(invitation, annotation(request, SEALED)?).ok()?;
    let subject = TokenClaims::read(&token)?.subject?;
    (subject == tenant_account_user(tenant_namespace)).then_some(token)
}

fn annotation<'a>(request: &'a CertificateSigningRequest, name: &str) -> Option<&'a str> {
    request.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    use portolan_core::tenancy::CertificateRequest;

    const ID: &str = "abcdefgh23";
    const HOME: &str = "portolan-tenant-rome";

    fn token_of(subject: &str) -> String {
        format!("e30.{}.c2ln", BASE64_URL_SAFE_NO_PAD.encode(json!({ "sub": subject }).to_string()))
    }

    fn digest(request: &CertificateSigningRequest) -> String {
        CertificateRequest::read(annotation(request, STATEMENT).unwrap().as_bytes()).unwrap().key_digest
    }

    fn with(request: &CertificateSigningRequest, token: &str, key: &SealingKey) -> CertificateSigningRequest {
        let mut request = request.clone();
        let written = annotations(&key.seal(ID, token).unwrap(), Timestamp::from_second(3600).unwrap());
        for (name, value) in written.as_object().unwrap() {
            let value = value.as_str().unwrap().to_owned();
            request.metadata.annotations.get_or_insert_default().insert(name.clone(), value);
        }
        request
    }

    #[test]
    fn a_token_of_the_tenants_own_account_is_taken_and_what_a_thief_has_put_there_is_not() {
        let key = KeyPair::generate().unwrap();
        let mut request = CertificateSigningRequest::default();
        assert_eq!(stated(&request, ID, Some("digest")), Err(NoToken::NotStated));
        state(&mut request, &key, ID).unwrap();
        let sealing = stated(&request, ID, Some(&digest(&request))).unwrap();
        assert!(matches!(stated(&request, ID, Some("another")), Err(NoToken::Unusable(_))));
        assert_eq!(stated(&request, ID, None), Err(NoToken::NotStated), "nobody was accepted");
        let opening = opening_key(&key);
        assert_eq!(opened(&request, &opening, ID, HOME), None);
        let own = token_of(&tenant_account_user(HOME));
        let handed = with(&request, &own, &sealing);
        assert_eq!(opened(&handed, &opening, ID, HOME), Some(own.clone()));
        assert_eq!(opened(&handed, &opening, ID, "portolan-tenant-milan"), None);
        for token in [token_of("system:serviceaccount:milan:thief"), "opaque".to_owned()] {
            assert_eq!(opened(&with(&request, &token, &sealing), &opening, ID, HOME), None);
        }
        let thief = opening_key(&KeyPair::generate().unwrap());
        assert_eq!(opened(&handed, &thief, ID, HOME), None);
    }

    #[test]
    fn a_token_is_replaced_before_it_ends() {
        let request = CertificateSigningRequest::default();
        assert_eq!(fresh_until(&request), None);
        let key = opening_key(&KeyPair::generate().unwrap()).public();
        let handed = with(&request, "token", &key);
        assert_eq!(fresh_until(&handed).map(Timestamp::as_second), Some(3000));
    }
}
