//! The line that a provider gives to a consumer.

use super::names::{is_cluster_id, is_invitation, is_label};
use crate::version::Version;
use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The version of the form below. A field that may be left out does not raise it, since fields that a reader does not know
/// mean nothing to it; what a reader must know does.
const VERSION: u64 = 1;

/// The longest line: authorities that sign for API servers have a few kilobytes.
const LONGEST: usize = 64 << 10;

const ENGINE: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, NO_PAD);

/// What a consumer needs to know to peer: where the provider is, how to know it, and a credential that allows one request
/// for a certificate until it ends. It is a secret until it was used.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvitationLine {
    v: u64,
    /// The URL of the provider's API server.
    pub server: String,
    /// The authority of its certificate, PEM in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
    /// The name in its certificate, if it is not that of the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_server_name: Option<String>,
    /// The name of the invitation.
    pub invitation: String,
    /// The bootstrap token.
    pub token: String,
    /// When both end.
    pub expires: Timestamp,
    /// Who the provider is.
    pub provider: ProviderIdentity,
    /// The version of the program that made the line; lines of programs before it have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// Who the provider is, and what it calls itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderIdentity {
    /// The uid of its kube-system namespace.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// Why a text is no invitation. No part of the text is quoted, since it is a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// There is nothing.
    #[error("the invitation is empty")]
    Empty,
    /// No provider makes such a line.
    #[error("the invitation has {0} characters, and at most {LONGEST} are read")]
    TooLong(usize),
    /// A character that no line has.
    #[error(
        "the invitation has a character at position {0} that does not belong there: give the whole line that \
         `portolan invite` printed, and nothing else"
    )]
    NotBase64(usize),
    /// The line is not whole.
    #[error(
        "the invitation is not complete or was changed: give the whole line of {0} characters and more that \
         `portolan invite` printed"
    )]
    CutOff(usize),
    /// Another version made it.
    #[error(
        "the invitation has version {0}, and this program reads version {VERSION}: use the provider's version of Portolan"
    )]
    Version(u64),
    /// A field that cannot be used.
    #[error("{field} of the invitation {problem}")]
    Field {
        /// Which one.
        field: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl InvitationLine {
    /// A line of the present version.
    #[must_use]
    pub fn new(
        server: String,
        invitation: String,
        token: String,
        expires: Timestamp,
        provider: ProviderIdentity,
    ) -> Self {
        Self {
            v: VERSION,
            server,
            authority: None,
            tls_server_name: None,
            invitation,
            token,
            expires,
            provider,
            program: None,
        }
    }

    /// As one line of letters, digits, dashes and underscores.
    #[must_use]
    pub fn encode(&self) -> String {
        // Texts, a number and a time are always written.
        ENGINE.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Reads a line; spaces and line breaks around and in it do not matter.
    ///
    /// # Errors
    /// Why it is no invitation.
    pub fn decode(text: &str) -> Result<Self, LineError> {
        if text.len() > LONGEST {
            return Err(LineError::TooLong(text.len()));
        }
        let line: String = text.chars().filter(|each| !each.is_whitespace()).collect();
        if line.is_empty() {
            return Err(LineError::Empty);
        }
        let allowed = |each: char| each.is_ascii_alphanumeric() || each == '-' || each == '_';
        if let Some(position) = line.chars().position(|each| !allowed(each)) {
            return Err(LineError::NotBase64(position + 1));
        }
        let cut_off = || LineError::CutOff(line.len());
        let bytes = ENGINE.decode(&line).map_err(|_| cut_off())?;
        let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|_| cut_off())?;
        let version = value.get("v").and_then(serde_json::Value::as_u64).ok_or_else(cut_off)?;
        if version != VERSION {
            return Err(LineError::Version(version));
        }
        let read: Self = serde_json::from_value(value).map_err(|_| cut_off())?;
        read.check()?;
        Ok(read)
    }

    fn check(&self) -> Result<(), LineError> {
        let refuse = |field, problem| Err(LineError::Field { field, problem });
        let host =
            self.server.strip_prefix("https://").map(|rest| rest.split('/').next().unwrap_or_default());
        let graphic = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        match host {
            None => return refuse("server", "does not begin with https://"),
            Some(host) if host.is_empty() || host.contains('@') || !graphic(&self.server) => {
                return refuse("server", "is not a URL such as https://10.0.0.5:6443");
            }
            Some(_) => {}
        }
        if !is_invitation(&self.invitation) {
            return refuse("invitation", "is not the name of an invitation");
        }
        if self.token.is_empty() || !graphic(&self.token) {
            return refuse("token", "cannot be sent");
        }
        if !is_cluster_id(&self.provider.id) {
            return refuse("provider.id", "is not the identity of a cluster");
        }
        if !is_label(&self.provider.name) {
            return refuse("provider.name", "is not a name of lower-case letters, digits and dashes");
        }
        if self
            .program
            .as_deref()
            .is_some_and(|program| !graphic(program) || Version::parse(program).is_err())
        {
            return refuse("program", "is no version such as 1.2.3");
        }
        Ok(())
    }
}

impl fmt::Debug for InvitationLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("InvitationLine");
        let shown = shown.field("server", &self.server).field("invitation", &self.invitation);
        shown.field("expires", &self.expires).field("provider", &self.provider).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line() -> InvitationLine {
        let provider = ProviderIdentity {
            id: "3fa2bc91-1111-2222-3333-444455556666".to_owned(),
            name: "paris".to_owned(),
        };
        let expires = Timestamp::from_second(1_800_000_000).unwrap();
        let server = "https://10.0.0.5:6443".to_owned();
        InvitationLine::new(server, "abcdefgh23".to_owned(), "eyJh.e30.c2ln".to_owned(), expires, provider)
    }

    #[test]
    fn a_line_is_read_back_also_when_a_terminal_has_wrapped_it() {
        let mut full = line();
        full.authority = Some("UEVN".to_owned());
        full.tls_server_name = Some("kubernetes".to_owned());
        let text = full.encode();
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
        assert_eq!(InvitationLine::decode(&text), Ok(full.clone()));
        let wrapped = format!("  {}\r\n{}\n", &text[..40], &text[40..]);
        assert_eq!(InvitationLine::decode(&wrapped), Ok(full));
    }

    /// Programs before and after this one read the same lines.
    #[test]
    fn fields_may_be_missing_and_unknown_ones_mean_nothing() {
        let mut full = line();
        full.program = Some("0.2.0".to_owned());
        assert_eq!(InvitationLine::decode(&full.encode()), Ok(full.clone()));
        let mut value = serde_json::to_value(&full).unwrap();
        value["later"] = serde_json::json!({"a": [1]});
        value["provider"]["later"] = serde_json::json!("x");
        let encode = |value: &serde_json::Value| ENGINE.encode(value.to_string());
        assert_eq!(InvitationLine::decode(&encode(&value)), Ok(full));
        let mut value = serde_json::to_value(line()).unwrap();
        assert!(value.get("program").is_none());
        assert_eq!(InvitationLine::decode(&encode(&value)), Ok(line()));
        for not in ["", "new", "1.2\u{1b}[2J", "1 .2"] {
            value["program"] = serde_json::json!(not);
            let error = InvitationLine::decode(&encode(&value)).unwrap_err();
            assert!(matches!(error, LineError::Field { field: "program", .. }), "{not:?}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_line_is_told_without_its_secret() {
        let changed = |edit: fn(&mut InvitationLine)| {
            let mut line = line();
            edit(&mut line);
            let error = InvitationLine::decode(&line.encode()).unwrap_err().to_string();
            assert!(!error.contains("eyJh"), "{error}");
            error
        };
        assert!(changed(|line| line.server = "http://a".into()).contains("https://"));
        assert!(changed(|line| line.server = "https://u:p@a".into()).contains("not a URL"));
        assert!(changed(|line| line.v = 2).contains("version 2"));
        assert!(changed(|line| line.invitation = "x".into()).contains("invitation"));
        assert!(changed(|line| line.token = "a\nb".into()).contains("token"));
        assert!(changed(|line| line.provider.id = "paris".into()).contains("provider.id"));
        assert_eq!(InvitationLine::decode(" \n"), Err(LineError::Empty));
        assert_eq!(InvitationLine::decode("ab$"), Err(LineError::NotBase64(3)));
        assert!(!format!("{:?}", line()).contains("eyJh"));
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in ".{0,400}") {
            let _ = InvitationLine::decode(&text);
        }

        #[test]
        fn no_json_is_a_panic(text in "\\{\"v\":1,\"[a-z]{1,10}\":(\"[^\"]{0,20}\"|[0-9]{1,20}|null|\\{\\})\\}") {
            prop_assert!(InvitationLine::decode(&ENGINE.encode(text)).is_err());
        }

        #[test]
        fn a_part_of_a_line_is_none(cut in 0_usize..300) {
            let text = line().encode();
            let cut = cut % text.len();
            prop_assert!(InvitationLine::decode(&text[..cut]).is_err());
            prop_assert!(InvitationLine::decode(&text[cut..]).is_err() || cut == 0);
        }

        #[test]
        fn a_line_with_another_letter_is_another_line_or_none(at in 0_usize..300, letter in "[A-Za-z0-9_-]") {
            let text = line().encode();
            let at = at % text.len();
            let mut other = text.clone();
            other.replace_range(at..=at, &letter);
            if other != text {
                prop_assert_ne!(InvitationLine::decode(&other).ok(), Some(line()));
            }
        }
    }
}
