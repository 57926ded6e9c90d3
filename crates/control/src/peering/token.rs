//! The token of the hub's service account in a member.

use super::PeerError;
use super::peer::NAMESPACE;
use crate::fleet::check_token;
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
/// On the Secret: the namespace of that service account, if it is not Portolan's own.
const ACCOUNT_NAMESPACE: &str = "portolan.dev/service-account-namespace";
/// On the Secret: when the token ends.
const EXPIRES: &str = "portolan.dev/expires-at";
/// On the Secret: when a new token is due.
const RENEW: &str = "portolan.dev/renew-at";
/// On the Secret: for how many seconds a token is asked for.
const LIFETIME: &str = "portolan.dev/token-lifetime-seconds";

/// A token that ends earlier is not worth a write: API servers make none of less than ten minutes.
const SHORTEST_LIFE: SignedDuration = SignedDuration::from_mins(5);

/// What a Secret says about the token that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFacts {
    /// The service account in the member.
    pub account: String,
    /// Its namespace: Portolan's own, or that of a tenant.
    pub namespace: String,
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
        let mut annotations = json!({
            ACCOUNT: self.account,
            EXPIRES: self.expires.to_string(),
            RENEW: self.renew.to_string(),
            LIFETIME: self.lifetime.to_string(),
        });
        if self.namespace != NAMESPACE {
            annotations[ACCOUNT_NAMESPACE] = json!(self.namespace);
        }
        annotations
    }

    /// From the annotations of a Secret; none if it is not of our making.
    #[must_use]
    pub fn read(annotations: &BTreeMap<String, String>) -> Option<Self> {
        Some(Self {
            account: annotations.get(ACCOUNT)?.clone(),
            namespace: annotations.get(ACCOUNT_NAMESPACE).map_or(NAMESPACE, String::as_str).to_owned(),
            expires: annotations.get(EXPIRES)?.parse().ok()?,
            renew: annotations.get(RENEW)?.parse().ok()?,
            lifetime: annotations.get(LIFETIME)?.parse().ok()?,
        })
    }
}

/// Asks a cluster for a token of a service account.
pub(crate) async fn request_token(
    member: &Client,
    namespace: &str,
    account: &str,
    lifetime: i64,
    now: Timestamp,
) -> Result<(String, TokenFacts), PeerError> {
    let accounts: Api<ServiceAccount> = Api::namespaced(member.clone(), namespace);
    let request = TokenRequest {
        spec: Some(TokenRequestSpec { expiration_seconds: Some(lifetime), ..TokenRequestSpec::default() }),
        ..TokenRequest::default()
    };
    let what = format!("make a token of service account {namespace}/{account}");
    let made = call(what, accounts.create_token_request(account, &PostParams::default(), &request)).await?;
    let missing = || PeerError::NoToken { account: format!("{namespace}/{account}") };
    let status = made.status.ok_or_else(missing)?;
    let expires = status.expiration_timestamp.ok_or_else(missing)?.0;
    let token = status.token.filter(|token| !token.is_empty()).ok_or_else(missing)?;
    let facts = judge(&token, (namespace, account), expires, lifetime, now)?;
    Ok((token, facts))
}

/// Whether a token that a member made is one to keep, and until when. Members are not trusted: one that ended already would
/// be renewed for ever, and one that cannot be sent would end the connection.
fn judge(
    token: &str,
    (namespace, account): (&str, &str),
    expires: Timestamp,
    lifetime: i64,
    now: Timestamp,
) -> Result<TokenFacts, PeerError> {
    let refused = |why: String| PeerError::TokenRefused { account: format!("{namespace}/{account}"), why };
    check_token(token).map_err(|error| refused(error.to_string()))?;
    let given = expires.duration_since(now);
    if given < SHORTEST_LIFE {
        let (seconds, least) = (given.as_secs(), SHORTEST_LIFE.as_secs());
        return Err(refused(format!(
            "it ends at {expires}, in {seconds} s, and must last for {least} s: compare the clocks of both clusters"
        )));
    }
    // The API server may give less than was asked for, so half of what it gave counts; more is not believed.
    let half = SignedDuration::from_secs(given.as_secs().min(lifetime) / 2);
    let renew = now.saturating_add(half).unwrap_or(expires);
    Ok(TokenFacts { account: account.to_owned(), namespace: namespace.to_owned(), expires, renew, lifetime })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(token: &str, lasts: i64) -> Result<TokenFacts, String> {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let expires = now + SignedDuration::from_secs(lasts);
        judge(token, (NAMESPACE, "hub-1"), expires, 3600, now).map_err(|error| error.to_string())
    }

    #[test]
    fn tokens_that_end_in_the_past_are_too_long_or_cannot_be_sent_are_refused() {
        for lasts in [-1_000_000, 0, 60, 299] {
            let error = judged("token", lasts).unwrap_err();
            assert!(error.contains(&format!("in {lasts} s")), "{error}");
        }
        for token in ["a\nb", "a\u{0}", &"x".repeat(700_000)] {
            let error = judged(token, 3600).unwrap_err();
            assert!(error.len() < 300 && error.contains("portolan/hub-1"), "{error}");
        }
    }

    #[test]
    fn a_secret_says_where_the_account_is_if_it_is_not_in_the_namespace_of_portolan() {
        let own = judged("token", 3600).unwrap();
        let tenants = TokenFacts { namespace: "portolan-tenant-rome".to_owned(), ..own.clone() };
        for facts in [&own, &tenants] {
            let written: BTreeMap<String, String> = serde_json::from_value(facts.annotations()).unwrap();
            assert_eq!(written.contains_key(ACCOUNT_NAMESPACE), facts.namespace != NAMESPACE);
            assert_eq!(TokenFacts::read(&written).as_ref(), Some(facts));
        }
    }

    #[test]
    fn a_token_is_due_at_half_of_what_was_given_and_never_later_than_asked_for() {
        let due = |lasts| {
            let facts = judged("token", lasts).unwrap();
            facts.renew.as_second() - 1_800_000_000
        };
        assert_eq!((due(3600), due(600), due(100 * 3600)), (1800, 300, 1800));
    }
}
