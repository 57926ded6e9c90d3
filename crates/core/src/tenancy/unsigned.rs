//! What a provider does about a request that it has approved and nobody has signed.

use std::time::Duration;

/// After this long it is said that nobody has signed yet.
const SIGNED_SOON: Duration = Duration::from_secs(10);

/// After this long a consumer gets a token in place of a certificate: the cluster's own signer stands still for less while
/// its leader changes.
pub const TOKEN_AFTER: Duration = Duration::from_secs(30);

/// How long a signer has where no token can be given.
pub const SIGNED_WITHIN: Duration = Duration::from_secs(90);

/// Why a consumer gets no token in place of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoToken {
    /// It has not stated the key to which its token would be sealed.
    #[error(
        "the consumer has not said for which key a token is to be encrypted, which `portolan peer` of this version does"
    )]
    NotStated,
    /// The statement cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// The admission policy of tenants does not bind service accounts in this cluster.
    #[error(
        "the admission policy {policy} in this cluster is missing, changed or of an older version, and would not bound the \
         service account: `portolan upgrade` applies it, and `portolan invite` where Portolan was not installed by a command"
    )]
    Unbounded {
        /// The policy.
        policy: &'static str,
    },
}

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsigned {
    /// It is waited for.
    Wait,
    /// It is waited for, and said that nobody has signed yet.
    WaitAloud,
    /// The consumer gets a token.
    Token,
    /// Nothing comes of the request.
    GiveUp(NoToken),
}

/// What is done about a request that was approved so long ago; `token` tells whether its consumer can have a token.
#[must_use]
pub fn unsigned(waited: Duration, token: Result<(), NoToken>) -> Unsigned {
    match token {
        _ if waited < SIGNED_SOON => Unsigned::Wait,
        Ok(()) if waited >= TOKEN_AFTER => Unsigned::Token,
        Err(why) if waited >= SIGNED_WITHIN => Unsigned::GiveUp(why),
        _ => Unsigned::WaitAloud,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signer_has_its_time_and_then_a_token_takes_its_place_or_a_reason() {
        let at = |seconds, token: Result<(), NoToken>| unsigned(Duration::from_secs(seconds), token);
        let no = || Err(NoToken::NotStated);
        assert_eq!((at(9, Ok(())), at(9, no())), (Unsigned::Wait, Unsigned::Wait));
        assert_eq!((at(29, Ok(())), at(89, no())), (Unsigned::WaitAloud, Unsigned::WaitAloud));
        assert_eq!(at(30, Ok(())), Unsigned::Token);
        assert_eq!(at(90, no()), Unsigned::GiveUp(NoToken::NotStated));
    }

    #[test]
    fn what_is_missing_is_named_with_what_helps() {
        let said = NoToken::Unbounded { policy: "portolan-tenants" }.to_string();
        assert!(said.contains("portolan-tenants") && said.contains("portolan invite"), "{said}");
    }
}
