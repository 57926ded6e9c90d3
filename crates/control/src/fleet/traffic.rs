//! The traffic of a member's services, as it is told there.
//!
//! Whoever measures traffic in a member writes it on the Service: a label, so that only such services are watched, how
//! many requests a second clients of that cluster send, and when that was measured. The numbers are smoothed here; one
//! that has grown old counts as not told.

use crate::names::{TRAFFIC_ANNOTATION, TRAFFIC_TIME_ANNOTATION};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::jiff::Timestamp;
use portolan_core::capacity::milli;
use portolan_runtime::{Change, Key};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

/// A number that is older than this counts as not told.
const STALE_AFTER_SECONDS: i64 = 300;

/// A number that is told after this long counts half.
const SMOOTHED_OVER_SECONDS: i64 = 30;

/// Clocks of members may be this much ahead. A number from a later time counts as not told.
const AHEAD_AT_MOST_SECONDS: i64 = 60;

/// Who receives traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Receiver {
    /// The pods that a Service selects.
    Selected(BTreeMap<String, String>),
    /// The application of this name.
    Named(String),
}

impl Receiver {
    fn is(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::Selected(selector) => {
                !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
            }
            Self::Named(named) => named == name,
        }
    }
}

/// What is told of traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TrafficReport {
    receiver: Receiver,
    /// Thousandths of a request per second; nothing if what is told cannot be read.
    requests: Option<u64>,
    at: Option<Timestamp>,
}

impl TrafficReport {
    pub(super) fn of(service: &Service) -> Self {
        let annotation = |name: &str| service.metadata.annotations.as_ref().and_then(|all| all.get(name));
        let requests = annotation(TRAFFIC_ANNOTATION).and_then(|text| milli(text).ok());
        let selector = service.spec.as_ref().and_then(|spec| spec.selector.clone());
        Self {
            receiver: Receiver::Selected(selector.unwrap_or_default()),
            requests: requests.and_then(|requests| u64::try_from(requests).ok()),
            at: annotation(TRAFFIC_TIME_ANNOTATION).and_then(|text| text.parse().ok()),
        }
    }

    /// What a query says of an application.
    pub(super) fn by_query(workload: String, requests: u64, at: Timestamp) -> Self {
        Self { receiver: Receiver::Named(workload), requests: Some(requests), at: Some(at) }
    }
}

/// The traffic of all services of a member.
#[derive(Clone, Debug, Default)]
pub struct Traffic(Arc<RwLock<BTreeMap<Key, Smoothed>>>);

#[derive(Debug)]
struct Smoothed {
    receiver: Receiver,
    requests: u64,
    at: Timestamp,
}

impl Traffic {
    /// Thousandths of requests per second that an application with pods of these labels receives; nothing if nobody
    /// tells.
    #[must_use]
    pub fn of(&self, workload: &Key, labels: &BTreeMap<String, String>, now: Timestamp) -> Option<u64> {
        let services = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let namespace = &workload.namespace;
        let receives = |each: &Smoothed| each.receiver.is(&workload.name, labels);
        let fresh = |each: &Smoothed| {
            let age = now.as_second() - each.at.as_second();
            (-AHEAD_AT_MOST_SECONDS..STALE_AFTER_SECONDS).contains(&age)
        };
        let first = Key::new(namespace, "");
        let own = services.range(first..).take_while(|(key, _)| key.namespace == *namespace);
        let told = own.filter(|(_, each)| receives(each) && fresh(each)).map(|(_, each)| each.requests);
        told.fold(None, |sum: Option<u64>, requests| Some(sum.unwrap_or(0).saturating_add(requests)))
    }

    /// Takes what services tell; answers the namespaces in which that is news.
    pub(super) fn take(&self, change: Change<TrafficReport>) -> BTreeSet<String> {
        let mut services = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut news = BTreeSet::new();
        let changed = match change {
            Change::Set(key, told) => BTreeMap::from([(key, Some(told))]),
            Change::Gone(key) => BTreeMap::from([(key, None)]),
            Change::Listed(all) => {
                let gone = services.keys().map(|key| (key.clone(), None));
                gone.chain(all.into_iter().map(|(key, told)| (key, Some(told)))).collect()
            }
        };
        for (key, told) in changed {
            let before = services.remove(&key);
            let now = told.and_then(|told| smooth(before.as_ref(), told));
            let number = |each: &Option<Smoothed>| each.as_ref().map(|each| each.requests);
            if number(&before) != number(&now) {
                news.insert(key.namespace.clone());
            }
            if let Some(now) = now {
                services.insert(key, now);
            }
        }
        news
    }
}

/// The further back the last number, the more the new one counts.
fn smooth(before: Option<&Smoothed>, told: TrafficReport) -> Option<Smoothed> {
    let (requests, at) = (told.requests?, told.at?);
    // A number from a time that has not come yet does not weigh against later ones.
    let before = before.filter(|before| before.at.as_second() - at.as_second() <= AHEAD_AT_MOST_SECONDS);
    let smoothed = match before {
        Some(before) => {
            let elapsed = u128::try_from(at.as_second() - before.at.as_second()).unwrap_or(0);
            let rest = u128::from(SMOOTHED_OVER_SECONDS.unsigned_abs());
            let sum = u128::from(before.requests) * rest + u128::from(requests) * elapsed;
            u64::try_from(sum / (rest + elapsed)).unwrap_or(u64::MAX)
        }
        None => requests,
    };
    let at = before.map_or(at, |before| before.at.max(at));
    Some(Smoothed { receiver: told.receiver, requests: smoothed, at })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(requests: &str, at: i64) -> TrafficReport {
        let service = serde_json::json!({
            "metadata": {"name": "web", "annotations": {
                TRAFFIC_ANNOTATION: requests,
                TRAFFIC_TIME_ANNOTATION: second(at).to_string(),
            }},
            "spec": {"selector": {"app": "web"}},
        });
        TrafficReport::of(&serde_json::from_value(service).unwrap())
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn set(traffic: &Traffic, requests: &str, at: i64) -> bool {
        !traffic.take(Change::Set(Key::new("shop", "web"), told(requests, at))).is_empty()
    }

    #[test]
    fn numbers_are_smoothed_and_grow_old() {
        let traffic = Traffic::default();
        let labels =
            BTreeMap::from([("app".to_owned(), "web".to_owned()), ("tier".to_owned(), "a".to_owned())]);
        let of = |at| traffic.of(&Key::new("shop", "app"), &labels, second(at));
        assert_eq!(of(0), None);
        assert!(set(&traffic, "10", 0));
        assert_eq!(of(1), Some(10_000));
        assert!(set(&traffic, "40", 30));
        assert_eq!(of(31), Some(25_000), "half way after the time it is smoothed over");
        assert!(!set(&traffic, "25", 60), "the same again is no news");
        assert_eq!(of(60 + STALE_AFTER_SECONDS), None);
        assert_eq!(traffic.of(&Key::new("other", "app"), &labels, second(60)), None);
        assert_eq!(
            traffic.of(&Key::new("shop", "app"), &BTreeMap::new(), second(60)),
            None,
            "it does not select those pods"
        );
    }

    #[test]
    fn a_number_from_the_future_is_not_told_and_does_not_outweigh_honest_ones() {
        let traffic = Traffic::default();
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        let of = |at| traffic.of(&Key::new("shop", "app"), &labels, second(at));
        set(&traffic, "1000", 1000);
        assert_eq!(of(0), None, "nobody knows what will be");
        assert!(set(&traffic, "10", 0));
        assert_eq!(of(1), Some(10_000));
        set(&traffic, "10", 30);
        assert_eq!(of(0), Some(10_000), "clocks differ a little");
    }

    #[test]
    fn what_cannot_be_read_or_is_gone_is_not_told() {
        let traffic = Traffic::default();
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        for nonsense in ["much", "-3", ""] {
            assert!(!set(&traffic, nonsense, 0), "{nonsense}");
        }
        assert!(set(&traffic, "0", 0));
        assert_eq!(
            traffic.of(&Key::new("shop", "app"), &labels, second(0)),
            Some(0),
            "no traffic is not the same as not told"
        );
        assert!(!traffic.take(Change::Listed(BTreeMap::new())).is_empty());
        assert_eq!(traffic.of(&Key::new("shop", "app"), &labels, second(0)), None);
    }
}
