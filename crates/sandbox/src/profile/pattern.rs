//! Texts in which `*` stands for anything.

use serde::{Deserialize, Serialize};

/// A text in which each `*` stands for anything, also for nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pattern(pub String);

impl Pattern {
    /// True if the text is one of those meant.
    #[must_use]
    pub fn fits(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut left) = text.strip_prefix(first) else { return false };
        let mut parts = parts.peekable();
        if parts.peek().is_none() {
            return left.is_empty();
        }
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                return left.ends_with(part);
            }
            match left.find(part) {
                Some(at) => left = &left[at + part.len()..],
                None => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        let fits = |pattern: &str, text: &str| Pattern(pattern.to_owned()).fits(text);
        assert!(
            fits("*", "") && fits("*", "a") && fits("a*", "a") && fits("a*c", "abc") && fits("*b*", "abc")
        );
        assert!(fits("a", "a") && fits("", "") && fits("a*b*c", "a-b-b-c"));
        assert!(!fits("a", "ab") && !fits("a*c", "ab") && !fits("", "a") && !fits("ab*ba", "aba"));
    }
}
