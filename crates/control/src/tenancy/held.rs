//! The credential that a consumer holds for a provider: a certificate, or a token.

use super::TenancyError;
use crate::names::TENANT_USER_ANNOTATION;
use crate::peering::{CertificateFacts, TokenFacts, certificate_user, request_token};
use jiff::Timestamp;
use kube::Client;
use portolan_core::tenancy::names::{TENANT_ACCOUNT, Tenant};
use rcgen::KeyPair;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What the Secret of a provider says about the credential in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// A certificate.
    Certificate(CertificateFacts),
    /// A token, where nobody signs certificates.
    Token {
        /// The user that the tenant is, as its invitation has made it.
        user: String,
        /// The token.
        facts: TokenFacts,
    },
}

impl Held {
    /// From the annotations of a Secret; none if no invitation has made it.
    #[must_use]
    pub fn read(annotations: &BTreeMap<String, String>) -> Option<Self> {
        let token = || {
            let user = annotations.get(TENANT_USER_ANNOTATION)?.clone();
            Some(Self::Token { user, facts: TokenFacts::read(annotations)? })
        };
        CertificateFacts::read(annotations).map(Self::Certificate).or_else(token)
    }

    /// The user that the tenant is: the common name of its certificate, also where it has none.
    #[must_use]
    pub fn user(&self) -> &str {
        match self {
            Self::Certificate(facts) => &facts.user,
            Self::Token { user, .. } => user,
        }
    }

    /// When it ends.
    #[must_use]
    pub fn expires(&self) -> Timestamp {
        match self {
            Self::Certificate(facts) => facts.expires,
            Self::Token { facts, .. } => facts.expires,
        }
    }

    /// What it is called.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Certificate(_) => "certificate",
            Self::Token { .. } => "token",
        }
    }

    /// As it stands on the Secret.
    pub(super) fn annotations(&self) -> Value {
        match self {
            Self::Certificate(facts) => facts.annotations(),
            Self::Token { user, facts } => {
                let mut annotations = facts.annotations();
                annotations[TENANT_USER_ANNOTATION] = json!(user);
                annotations
            }
        }
    }
}

/// What the provider has made for the consumer.
pub(super) enum Handed {
    Certificate(String),
    /// The first token, where nobody signs certificates.
    Token(String),
}

/// A credential that works, and the client that has it.
pub(super) struct Fresh {
    pub(super) held: Held,
    /// The user of a kubeconfig.
    pub(super) user: Value,
    pub(super) client: Client,
}

/// What becomes of that which a provider has handed over: a certificate is kept, and by a token another one is asked for, which
/// nobody but this cluster has ever had.
pub(super) async fn fresh(
    handed: &Handed,
    tenant: &Tenant,
    key: &KeyPair,
    (tenant_namespace, lifetime): (&str, i32),
    now: Timestamp,
    dial: &(dyn Fn(Value) -> Result<Client, TenancyError> + Sync),
) -> Result<Fresh, TenancyError> {
    match handed {
        Handed::Certificate(certificate) => {
            let facts = CertificateFacts::of(certificate, &tenant.user(), key, lifetime)
                .map_err(|why| TenancyError::Key { what: "credential of the certificate", why })?;
            let user = certificate_user(certificate, &key.serialize_pem());
            Ok(Fresh { held: Held::Certificate(facts), client: dial(user.clone())?, user })
        }
        Handed::Token(first) => {
            let provider = dial(json!({ "token": first }))?;
            let (token, facts) =
                request_token(&provider, tenant_namespace, TENANT_ACCOUNT, lifetime.into(), now).await?;
            let user = json!({ "token": token });
            let held = Held::Token { user: tenant.user(), facts };
            Ok(Fresh { held, client: dial(user.clone())?, user })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_of_an_invitation_says_whose_it_is_and_one_of_a_plain_member_is_none() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let facts = TokenFacts {
            account: TENANT_ACCOUNT.to_owned(),
            namespace: "portolan-tenant-rome".to_owned(),
            expires: at(3600),
            renew: at(1800),
            lifetime: 3600,
        };
        let held = Held::Token { user: "portolan:tenant:x".to_owned(), facts: facts.clone() };
        let read = |annotations: Value| Held::read(&serde_json::from_value(annotations).unwrap());
        assert_eq!(read(held.annotations()), Some(held.clone()));
        assert_eq!((held.user(), held.expires(), held.kind()), ("portolan:tenant:x", at(3600), "token"));
        assert_eq!(read(facts.annotations()), None);
        let certificate =
            CertificateFacts { user: "y".to_owned(), expires: at(2), renew: at(1), lifetime: 600 };
        let read = read(certificate.annotations());
        assert_eq!(read, Some(Held::Certificate(certificate)));
    }
}
