//! Which of the numbers that a member reports are believed.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use portolan_api::ClusterReportStatus;
use portolan_api::clusterreport::TARGETS_AT_MOST;
use std::collections::BTreeMap;
use std::time::Duration;

/// A report that is older than this does not count.
const STALE_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// Clocks of members may be this much ahead. A report from a later time does not count.
const AHEAD_AT_MOST: SignedDuration = SignedDuration::from_mins(1);

/// No other cluster is nearer than this: less is no measurement, and would draw all workloads.
const SHORTEST: Duration = Duration::from_micros(10);

/// No other cluster that answers is farther than this.
const LONGEST: Duration = Duration::from_secs(10);

/// What is believed of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// When the member measured; nothing if it does not.
    observed_at: Option<Timestamp>,
    latencies: BTreeMap<String, Duration>,
}

impl Report {
    /// Whether the member measures, as far as it can be told by now.
    #[must_use]
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        let age = self.observed_at.map(|at| now.duration_since(at));
        age.is_some_and(|age| (-AHEAD_AT_MOST..STALE_AFTER).contains(&age))
    }

    /// When the member measured.
    #[must_use]
    pub fn observed_at(&self) -> Option<Timestamp> {
        self.observed_at
    }

    /// The round-trip times by the name of the other cluster.
    #[must_use]
    pub fn latencies(&self) -> &BTreeMap<String, Duration> {
        &self.latencies
    }
}

/// Reads a report. Of each cluster the first number counts; clusters that are not known, and numbers that cannot be, are left out.
#[must_use]
pub fn judge(status: &ClusterReportStatus, is_known: impl Fn(&str) -> bool) -> Report {
    let mut latencies = BTreeMap::new();
    for each in status.latencies.iter().take(TARGETS_AT_MOST) {
        let is_plausible = (SHORTEST..=LONGEST).contains(&each.rtt.0);
        if is_plausible && is_known(&each.to) {
            latencies.entry(each.to.clone()).or_insert(each.rtt.0);
        }
    }
    Report { observed_at: status.observed_at.as_ref().map(|at| at.0), latencies }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn judged(latencies: Value) -> Report {
        let status = json!({"observedAt": "2026-01-01T00:00:00Z", "latencies": latencies});
        judge(&serde_json::from_value(status).unwrap(), |name| ["rome", "lille"].contains(&name))
    }

    fn names(latencies: Value) -> Vec<String> {
        judged(latencies).latencies().keys().cloned().collect()
    }

    #[test]
    fn what_is_unknown_or_absurd_is_left_out_and_the_rest_counts() {
        let told = judged(json!([{"to": "rome", "rtt": "12ms"}, {"to": "mooon", "rtt": "12ms"}]));
        assert_eq!(told.latencies(), &BTreeMap::from([("rome".to_owned(), Duration::from_millis(12))]));
        assert!(names(json!([{"to": "rome", "rtt": "0s"}, {"to": "lille", "rtt": "11s"}])).is_empty());
        assert!(names(json!([{"to": "rome", "rtt": "1us"}, {"to": "lille", "rtt": "7d"}])).is_empty());
        assert_eq!(names(json!([{"to": "rome", "rtt": "10us"}, {"to": "lille", "rtt": "10s"}])).len(), 2);
        let twice = judged(json!([{"to": "rome", "rtt": "12ms"}, {"to": "rome", "rtt": "1ms"}]));
        assert_eq!(twice.latencies()["rome"], Duration::from_millis(12));
    }

    #[test]
    fn no_more_is_read_than_a_report_may_have() {
        let filler = (0..TARGETS_AT_MOST).map(|number| json!({"to": format!("n{number}"), "rtt": "1ms"}));
        let all: Vec<Value> = filler.chain([json!({"to": "rome", "rtt": "1ms"})]).collect();
        assert!(names(json!(all)).is_empty());
    }

    #[test]
    fn a_report_grows_old_and_one_from_the_future_does_not_count() {
        let report = judged(json!([]));
        let after = |seconds: i64| {
            let at: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
            at.checked_add(SignedDuration::from_secs(seconds)).unwrap()
        };
        for (seconds, is_fresh) in [(0, true), (299, true), (300, false), (-60, true), (-61, false)] {
            assert_eq!(report.is_fresh(after(seconds)), is_fresh, "{seconds}");
        }
        assert!(!Report::default().is_fresh(after(0)), "a member that never measured");
    }
}
