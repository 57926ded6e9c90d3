//! What a member has measured of the endpoints that hubs named.

use super::Endpoint;
use crate::latency::RoundTrip;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use portolan_api::ClusterReportStatus;
use portolan_api::clusterreport::{ReportTarget, ReportedLatency, TARGETS_AT_MOST};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// An endpoint that did not answer so often in a row is not told of any more.
const MISSED_AT_MOST: u32 = 3;

/// How old a report grows whose numbers stand: much younger than one that does not count any more.
const RENEWED_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// The measurements of all endpoints. However many hubs there are, no more are measured than one of them may name.
#[derive(Clone, Debug, Default)]
pub struct Measurements(BTreeMap<Endpoint, Measured>);

#[derive(Clone, Debug, Default)]
struct Measured {
    round_trip: RoundTrip,
    missed: u32,
}

impl Measurements {
    /// Takes what all hubs name together; what nobody names any more is forgotten.
    pub fn aim<'a>(&mut self, targets: impl Iterator<Item = &'a ReportTarget>) {
        let mut named = BTreeSet::new();
        for target in targets {
            if named.len() == TARGETS_AT_MOST {
                break;
            }
            named.extend(Endpoint::parse(&target.server));
        }
        self.0.retain(|endpoint, _| named.contains(endpoint));
        for endpoint in named {
            self.0.entry(endpoint).or_default();
        }
    }

    /// The endpoints that are to be measured.
    #[must_use]
    pub fn endpoints(&self) -> Vec<Endpoint> {
        self.0.keys().cloned().collect()
    }

    /// Takes how long an endpoint took to answer, or that it did not.
    pub fn take(&mut self, endpoint: &Endpoint, answered: Option<Duration>) {
        let Some(measured) = self.0.get_mut(endpoint) else { return };
        match answered {
            Some(time) => {
                measured.round_trip.measure(time);
                measured.missed = 0;
            }
            None => {
                measured.missed = measured.missed.saturating_add(1);
                if measured.missed >= MISSED_AT_MOST {
                    measured.round_trip = RoundTrip::default();
                }
            }
        }
    }

    /// What is to be told of the targets of a hub, which are those of this generation of its report; nothing if what was told before
    /// will do.
    #[must_use]
    pub fn news(
        &self,
        targets: &[ReportTarget],
        generation: Option<i64>,
        told: &ClusterReportStatus,
        now: Timestamp,
    ) -> Option<Vec<ReportedLatency>> {
        let before: BTreeMap<&str, Duration> =
            told.latencies.iter().map(|each| (each.to.as_str(), each.rtt.0)).collect();
        let times = targets.iter().filter_map(|target| {
            let time = self.0.get(&Endpoint::parse(&target.server)?)?.round_trip.time()?;
            Some((target.name.as_str(), time))
        });
        let times: BTreeMap<&str, Duration> = times.collect();
        let is_old = told.observed_at.as_ref().is_none_or(|at| {
            let age = now.duration_since(at.0);
            age >= RENEWED_AFTER || age.is_negative()
        });
        let has_changed = !before.keys().eq(times.keys())
            || times.iter().any(|(name, time)| RoundTrip::is_news(before.get(name).copied(), *time));
        let is_of_another = told.observed_generation != generation;
        (is_old || is_of_another || has_changed).then(|| {
            times
                .iter()
                .map(|(name, time)| ReportedLatency { to: (*name).to_owned(), rtt: whole(*time) })
                .collect()
        })
    }
}

/// Whole hundredths of a millisecond: more is noise, and none at all is no measurement.
fn whole(time: Duration) -> portolan_api::Duration {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    portolan_api::Duration::from_micros((micros.saturating_add(5) / 10 * 10).max(10))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn target(name: &str) -> ReportTarget {
        ReportTarget { name: name.to_owned(), server: format!("https://{name}:6443") }
    }

    fn endpoint(name: &str) -> Endpoint {
        Endpoint { host: name.to_owned(), port: 6443 }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn told(latencies: Vec<ReportedLatency>, second: i64) -> ClusterReportStatus {
        ClusterReportStatus {
            observed_at: Some(Time(at(second))),
            latencies,
            ..ClusterReportStatus::default()
        }
    }

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn only_what_answered_is_told_and_only_when_it_is_news_or_old() {
        let targets = [target("lille"), target("rome")];
        let mut measurements = Measurements::default();
        measurements.aim(targets.iter());
        let news = |measurements: &Measurements, told: &ClusterReportStatus, second| {
            measurements.news(&targets, None, told, at(second))
        };
        assert_eq!(news(&measurements, &ClusterReportStatus::default(), 0), Some(vec![]), "that it measures");
        measurements.take(&endpoint("lille"), Some(ms(20)));
        measurements.take(&endpoint("rome"), None);
        let first = news(&measurements, &told(vec![], 0), 5).unwrap();
        assert_eq!(
            first,
            [ReportedLatency { to: "lille".to_owned(), rtt: portolan_api::Duration::from_millis(20) }]
        );
        let status = told(first, 5);
        measurements.take(&endpoint("lille"), Some(ms(21)));
        assert_eq!(news(&measurements, &status, 10), None);
        assert!(news(&measurements, &status, 65).is_some(), "it must not grow old");
        measurements.take(&endpoint("rome"), Some(ms(3)));
        assert_eq!(news(&measurements, &status, 10).map(|all| all.len()), Some(2));
    }

    #[test]
    fn a_new_generation_is_told_at_once_even_if_its_times_are_the_same() {
        let targets = [target("lille")];
        let mut measurements = Measurements::default();
        measurements.aim(targets.iter());
        let status = ClusterReportStatus { observed_generation: Some(1), ..told(vec![], 0) };
        assert_eq!(measurements.news(&targets, Some(1), &status, at(5)), None);
        assert_eq!(measurements.news(&targets, Some(2), &status, at(5)), Some(vec![]));
    }

    #[test]
    fn who_falls_silent_is_left_out_after_a_while_and_measured_anew_when_it_answers() {
        let targets = [target("lille")];
        let mut measurements = Measurements::default();
        measurements.aim(targets.iter());
        measurements.take(&endpoint("lille"), Some(ms(20)));
        let all = |measurements: &Measurements| {
            measurements.news(&targets, None, &ClusterReportStatus::default(), at(0)).unwrap()
        };
        for _ in 1..MISSED_AT_MOST {
            measurements.take(&endpoint("lille"), None);
            assert_eq!(all(&measurements).len(), 1);
        }
        measurements.take(&endpoint("lille"), None);
        assert!(all(&measurements).is_empty());
        measurements.take(&endpoint("lille"), Some(ms(50)));
        assert_eq!(all(&measurements)[0].rtt, portolan_api::Duration::from_millis(50));
    }

    #[test]
    fn what_nobody_names_is_forgotten_and_many_hubs_name_no_more_than_one_may() {
        let mut measurements = Measurements::default();
        let many: Vec<ReportTarget> = (0..1000).map(|number| target(&format!("n{number}"))).collect();
        measurements.aim(many.iter());
        assert_eq!(measurements.endpoints().len(), TARGETS_AT_MOST);
        let wrong = ReportTarget { name: "x".to_owned(), server: "http://x:1".to_owned() };
        measurements.aim([target("lille"), target("lille"), wrong].iter());
        assert_eq!(measurements.endpoints(), [endpoint("lille")]);
    }
}
