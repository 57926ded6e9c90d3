//! Names that may be parts of a path.

use std::fmt;

/// The longest name.
const LONGEST: usize = 253;

/// A name that is safe as one part of a path: of a migration, a container or a volume.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

/// Why a text cannot be a [`Name`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} cannot be the name of a {what}: it has 1 to {LONGEST} lower-case letters, digits, '-' and '.', and begins \
     and ends with a letter or digit"
)]
pub struct NameError {
    /// What was to be named.
    pub what: &'static str,
    /// The text, at most as much of it as is worth showing.
    pub text: String,
}

impl Name {
    /// Checks a name of a `what`.
    ///
    /// # Errors
    /// It could lead to another folder, or is no name in Kubernetes.
    pub fn new(what: &'static str, text: &str) -> Result<Self, NameError> {
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
        let right = text.len() <= LONGEST
            && edge(text.chars().next())
            && edge(text.chars().next_back())
            && text.chars().all(inner)
            && !text.contains("..");
        if right {
            return Ok(Self(text.to_owned()));
        }
        Err(NameError { what, text: text.chars().take(64).collect() })
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere() {
        for text in ["web", "a", "web-7d4f.default", "0"] {
            assert_eq!(Name::new("container", text).unwrap().as_str(), text);
        }
        let long = "a".repeat(254);
        for text in
            ["", ".", "..", "a/b", "/a", "a..b", ".a", "a-", "A", "a\0", "a\n", "\u{e4}", long.as_str()]
        {
            let error = Name::new("container", text).unwrap_err();
            assert!(error.text.len() <= 256 && error.to_string().contains("name of a container"));
        }
    }
}
