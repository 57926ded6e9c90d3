//! Whether a consumer is there, by what it has said and what was known of it.

use jiff::{SignedDuration, Timestamp};

/// A consumer whose invitation was deleted before it came is waited for no longer than this: it says within minutes that it is
/// there, also to a provider that was restored.
const AWAITED_FOR: SignedDuration = SignedDuration::from_secs(15 * 60);

/// How a consumer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It says that it has its credential.
    Here,
    /// It has never said so.
    Awaited,
    /// It has said so, and what it has said is not there any more.
    Missing,
}

/// How the consumer stands that is this user. `said` is who has said that it is there, `has_been_here` whether it was seen
/// before.
#[must_use]
pub fn presence(user: &str, said: Option<&str>, has_been_here: bool) -> Presence {
    match said {
        Some(said) if said == user => Presence::Here,
        _ if has_been_here => Presence::Missing,
        _ => Presence::Awaited,
    }
}

/// Whether a consumer that never came cannot come any more: its invitation does not exist, and it was waited for since long.
#[must_use]
pub fn is_abandoned(has_invitation: bool, awaited_since: Option<Timestamp>, now: Timestamp) -> bool {
    !has_invitation && awaited_since.is_some_and(|since| now.duration_since(since) >= AWAITED_FOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_has_been_here_is_missing_and_not_awaited() {
        assert_eq!(presence("rome", Some("rome"), false), Presence::Here);
        assert_eq!(presence("rome", Some("milan"), false), Presence::Awaited);
        assert_eq!(presence("rome", None, false), Presence::Awaited);
        assert_eq!(presence("rome", None, true), Presence::Missing);
    }

    #[test]
    fn one_is_abandoned_when_it_cannot_come_and_had_its_time() {
        let at = |minute: i64| Timestamp::from_second(minute * 60).unwrap();
        assert!(is_abandoned(false, Some(at(0)), at(15)));
        assert!(!is_abandoned(false, Some(at(0)), at(14)), "it may be on its way");
        assert!(!is_abandoned(true, Some(at(0)), at(60)), "its invitation ends by itself");
        assert!(!is_abandoned(false, None, at(60)), "nobody has waited yet");
    }
}
