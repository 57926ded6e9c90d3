//! What a token says of itself: who it is for, and until when.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use portolan_runtime::foreign_text;
use serde_json::Value;

/// The claims of a JSON Web Token that are no secret. Nobody has checked its signature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenClaims {
    /// Who it is for, such as `system:serviceaccount:portolan:hub-1a2b3c4d`.
    pub subject: Option<String>,
    /// When it ends.
    pub expires: Option<Timestamp>,
}

impl TokenClaims {
    /// Reads a token; nothing if it is none of this kind.
    #[must_use]
    pub fn read(token: &str) -> Option<Self> {
        let payload = token.split('.').nth(1)?;
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
        let claims: Value = serde_json::from_slice(&bytes).ok()?;
        Some(Self {
            subject: claims["sub"].as_str().map(foreign_text),
            expires: claims["exp"].as_i64().and_then(|second| Timestamp::from_second(second).ok()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_who_and_until_when_and_other_tokens_say_nothing() {
        let payload = BASE64_URL_SAFE_NO_PAD.encode(r#"{"sub":"a\u001b","exp":1800000000}"#);
        let claims = TokenClaims::read(&format!("e30.{payload}.c2ln")).unwrap();
        assert_eq!(claims.subject.as_deref(), Some("a\\u{1b}"));
        assert_eq!(claims.expires.map(Timestamp::as_second), Some(1_800_000_000));
        for other in ["", "opaque", "a.b.c", "e30.*.x"] {
            assert_eq!(TokenClaims::read(other), None, "{other}");
        }
    }
}
