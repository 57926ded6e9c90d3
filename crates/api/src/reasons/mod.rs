//! Reasons: one word in CamelCase that says why a condition, a placement, a refusal, an event or a review is as it is.

mod list;
mod place;

pub use list::Reason;
pub use place::Place;

use std::fmt;

impl Reason {
    /// The reason of this name. `None` if Portolan has no such reason: another version wrote it, or somebody else.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.as_str() == name)
    }

    /// All reasons, by name.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl AsRef<str> for Reason {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl From<Reason> for String {
    fn from(reason: Reason) -> Self {
        reason.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_parsed_from_its_name() {
        for reason in Reason::all() {
            assert_eq!(Reason::parse(reason.as_str()), Some(reason));
        }
        assert_eq!((Reason::parse(""), Reason::parse("noRoom")), (None, None));
    }

    #[test]
    fn reasons_are_in_order_of_their_names() {
        assert!(Reason::all().is_sorted_by(|one, other| one.as_str() < other.as_str()));
    }

    #[test]
    fn every_reason_has_a_place_and_a_meaning_that_is_a_sentence() {
        for reason in Reason::all() {
            assert!(!reason.places().is_empty(), "{reason} is seen nowhere");
            for text in [reason.meaning(), reason.help()].into_iter().filter(|text| !text.is_empty()) {
                assert!(
                    text.starts_with(|first: char| first.is_uppercase() || first == '`'),
                    "{reason}: {text}"
                );
                assert!(text.ends_with('.') && !text.contains(['|', '\n']), "{reason}: {text}");
            }
            assert!(!reason.meaning().is_empty(), "{reason} has no meaning");
        }
    }
}
