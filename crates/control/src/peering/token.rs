//! The token of the hub's service account in a member.

use super::PeerError;
use super::objects::NAMESPACE;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Api, Client};
use portolan_runtime::call;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// On the Secret: the service account in the member whose token it holds.
const ACCOUNT: &str = "portolan.dev/service-account";
/// On the Secret: when the token ends.
const EXPIRES: &str = "portolan.dev/expires-at";
/// On the Secret: when a new token is due.
const RENEW: &str = "portolan.dev/renew-at";
/// On the Secret: for how many seconds a token is asked for.
const LIFETIME: &str = "portolan.dev/token-lifetime-seconds";

/// What a Secret says about the token that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFacts {
    /// The service account, in Portolan's namespace in the member.
    pub account: String,
    /// When it ends.
    pub expires: Timestamp,
    /// When a new one is due: at half its life, so that a hub that is down for a while still finds it valid.
    pub renew: Timestamp,
    /// For how many seconds it was asked for.
    pub lifetime: i64,
}

impl TokenFacts {
    /// As it stands on the Secret.
    #[must_use]
    pub fn annotations(&self) -> Value {
        json!({
            ACCOUNT: self.account,
            EXPIRES: self.expires.to_string(),
            RENEW: self.renew.to_string(),
            LIFETIME: self.lifetime.to_string(),
        })
    }

    /// From the annotations of a Secret; none if it is not of our making.
    #[must_use]
    pub fn read(annotations: &BTreeMap<String, String>) -> Option<Self> {
        Some(Self {
            account: annotations.get(ACCOUNT)?.clone(),
            expires: annotations.get(EXPIRES)?.parse().ok()?,
            renew: annotations.get(RENEW)?.parse().ok()?,
            lifetime: annotations.get(LIFETIME)?.parse().ok()?,
        })
    }
}

/// Asks a member for a token of the hub's account there.
pub(super) async fn request(
    member: &Client,
    account: &str,
    lifetime: i64,
    now: Timestamp,
) -> Result<(String, TokenFacts), PeerError> {
    let accounts: Api<ServiceAccount> = Api::namespaced(member.clone(), NAMESPACE);
    let request = TokenRequest {
        spec: Some(TokenRequestSpec { expiration_seconds: Some(lifetime), ..TokenRequestSpec::default() }),
        ..TokenRequest::default()
    };
    let what = format!("make a token of service account {NAMESPACE}/{account} in the member");
    let made = call(what, accounts.create_token_request(account, &PostParams::default(), &request)).await?;
    let missing = || PeerError::NoToken { account: format!("{NAMESPACE}/{account}") };
    let status = made.status.ok_or_else(missing)?;
    let expires = status.expiration_timestamp.ok_or_else(missing)?.0;
    let token = status.token.filter(|token| !token.is_empty()).ok_or_else(missing)?;
    // The API server may give less than was asked for, so half of what it gave counts.
    let half = SignedDuration::from_secs(expires.duration_since(now).as_secs() / 2);
    let renew = now.saturating_add(half).unwrap_or(expires);
    Ok((token, TokenFacts { account: account.to_owned(), expires, renew, lifetime }))
}
