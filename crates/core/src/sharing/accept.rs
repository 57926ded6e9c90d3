//! Which offers a consumer accepts.

use crate::capacity::{Amounts, amount};
use k8s_openapi::jiff::Timestamp;

/// What a consumer asks of an offer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// Whether a user has to accept the offer, and the uid of the one that was accepted so, if any.
    pub by_hand: Option<Option<String>>,
    /// What an offer must have at least.
    pub minimum: Amounts,
}

/// An offer as the consumer knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferView {
    /// Its uid.
    pub uid: String,
    /// What is offered.
    pub resources: Amounts,
    /// Until when.
    pub expires_at: Option<Timestamp>,
}

/// What a consumer makes of an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// It is accepted.
    Accepted,
    /// There is none.
    NotFound,
    /// The provider has not renewed it in time.
    Expired(Timestamp),
    /// It has less than it must have: which resources, with what is offered and what is asked for.
    BelowMinimum(Vec<(String, i64, i64)>),
    /// A user has to accept it.
    Awaiting,
}

impl Acceptance {
    /// What was found, in words.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Accepted => "the offer is accepted".to_owned(),
            Self::NotFound => "the provider has made no offer yet".to_owned(),
            Self::Expired(since) => format!("the offer expired at {since}: the provider has not renewed it"),
            Self::BelowMinimum(lacking) => {
                let each = |(name, offered, minimum): &(String, i64, i64)| {
                    format!("{name} {} of at least {}", amount(name, *offered), amount(name, *minimum))
                };
                let lacking: Vec<String> = lacking.iter().map(each).collect();
                format!("the offer has less than spec.outgoing.minimum asks for: {}", lacking.join(", "))
            }
            Self::Awaiting => "the offer waits for a user to accept it".to_owned(),
        }
    }
}

/// What a consumer makes of an offer now.
#[must_use]
pub fn accept(conditions: &Conditions, offer: Option<&OfferView>, now: Timestamp) -> Acceptance {
    let Some(offer) = offer else { return Acceptance::NotFound };
    if let Some(expired) = offer.expires_at.filter(|expires_at| *expires_at <= now) {
        return Acceptance::Expired(expired);
    }
    if let Some(accepted) = &conditions.by_hand
        && accepted.as_ref() != Some(&offer.uid)
    {
        return Acceptance::Awaiting;
    }
    let lacking = |(name, minimum): (&str, i64)| {
        let offered = offer.resources.get(name);
        (offered < minimum).then(|| (name.to_owned(), offered, minimum))
    };
    let lacking: Vec<_> = conditions.minimum.iter().filter_map(lacking).collect();
    if lacking.is_empty() { Acceptance::Accepted } else { Acceptance::BelowMinimum(lacking) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::CPU;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn offer(milli: i64) -> OfferView {
        OfferView { uid: "u1".into(), resources: Amounts::of(CPU, milli), expires_at: Some(at(100)) }
    }

    #[test]
    fn an_offer_is_accepted_by_policy_while_it_lasts() {
        let any = Conditions::default();
        assert_eq!(accept(&any, None, at(1)), Acceptance::NotFound);
        assert_eq!(accept(&any, Some(&offer(1)), at(99)), Acceptance::Accepted);
        assert_eq!(accept(&any, Some(&offer(1)), at(100)), Acceptance::Expired(at(100)));
        let least = Conditions { minimum: Amounts::of(CPU, 2000), ..Conditions::default() };
        let refused = accept(&least, Some(&offer(1500)), at(1));
        assert!(refused.message().ends_with("cpu 1.5 of at least 2"), "{}", refused.message());
        assert_eq!(accept(&least, Some(&offer(2000)), at(1)), Acceptance::Accepted);
    }

    #[test]
    fn an_offer_that_was_accepted_by_hand_is_that_one_and_no_other() {
        let by_hand =
            |uid: Option<&str>| Conditions { by_hand: Some(uid.map(str::to_owned)), ..Conditions::default() };
        assert_eq!(accept(&by_hand(None), Some(&offer(1)), at(1)), Acceptance::Awaiting);
        assert_eq!(accept(&by_hand(Some("other")), Some(&offer(1)), at(1)), Acceptance::Awaiting);
        assert_eq!(accept(&by_hand(Some("u1")), Some(&offer(1)), at(1)), Acceptance::Accepted);
    }
}
