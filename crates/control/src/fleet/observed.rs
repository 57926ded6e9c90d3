//! The numbers of a member, as its ForeignCluster's status tells them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use portolan_api::foreigncluster::{
    ClusterSummary, ForeignClusterStatus, Latency, LatencySource, MemberLatency, NodeCount, OutgoingStatus,
};
use portolan_api::placement::Resources;
use portolan_core::capacity::{self, CPU, MEMORY, amount, milli};
use portolan_core::latency::RoundTrip;
use portolan_core::report::Report;
use std::collections::BTreeMap;
use std::time::Duration;

/// What was observed of a member.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    /// Its version of Kubernetes.
    pub(super) version: Option<String>,
    /// Its room, once all of it is known.
    pub(super) summary: Option<capacity::ClusterSummary>,
    /// What the hub is called, and how far away it is.
    pub(super) round_trip: Option<(String, RoundTrip)>,
    /// What it reports of its distance to the others; nothing if it was not asked yet.
    pub(super) reported: Option<Report>,
    /// The version of the Secret whose credential it has accepted.
    pub(super) credential: Option<String>,
    /// What it offers to this cluster.
    pub(super) outgoing: Option<OutgoingStatus>,
}

impl Observed {
    /// Writes what is known into a status; what is not known stays as it was last told.
    pub(super) fn tell(&self, status: &mut ForeignClusterStatus, now: &Time) {
        if let Some(version) = &self.version {
            status.kubernetes_version = Some(version.clone());
        }
        if let Some(credential) = &self.credential {
            status.credentials_resource_version = Some(credential.clone());
        }
        if let Some(outgoing) = &self.outgoing {
            status.outgoing = Some(outgoing.clone());
        }
        if let Some(summary) = &self.summary {
            let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
            status.nodes = Some(NodeCount { total: count(summary.nodes), ready: count(summary.ready) });
            status.capacity = summary.capacity.quantities();
            status.allocated = summary.allocated.quantities();
            status.available = summary.available.quantities();
            status.pending_pods = Some(count(summary.pending_pods));
            status.capacity_observed_at = summary.observed_at.map(Time);
        }
        self.tell_round_trip(status, now);
        self.tell_report(status);
        status.summary = Some(self.summary_of(status));
    }

    /// The numbers of a status as short texts.
    fn summary_of(&self, status: &ForeignClusterStatus) -> ClusterSummary {
        let share = |name: &str| {
            let read = |from: &Resources| from.get(name).and_then(|quantity| milli(&quantity.0).ok());
            let all = read(&status.capacity)?;
            Some(format!("{}/{}", amount(name, read(&status.allocated).unwrap_or(0)), amount(name, all)))
        };
        let hub = self.round_trip.as_ref().map(|(hub, _)| hub);
        let rtt = hub.and_then(|hub| status.latencies.iter().find(|each| each.to == *hub));
        let before = status.summary.as_ref().and_then(|summary| summary.rtt.clone());
        ClusterSummary {
            nodes: status.nodes.map(|nodes| format!("{}/{}", nodes.ready, nodes.total)),
            cpu: share(CPU),
            memory: share(MEMORY),
            rtt: rtt.map(|each| each.rtt.to_string()).or(before),
        }
    }

    fn tell_round_trip(&self, status: &mut ForeignClusterStatus, now: &Time) {
        let Some((hub, round_trip)) = &self.round_trip else { return };
        let Some(time) = round_trip.time() else { return };
        let told = status.latencies.iter().find(|each| each.to == *hub).map(|each| each.rtt.0);
        if !RoundTrip::is_news(told, time) {
            return;
        }
        status.latencies.retain(|each| each.to != *hub);
        status.latencies.push(Latency {
            to: hub.clone(),
            rtt: whole(time),
            deviation: Some(whole(round_trip.deviation())),
            source: LatencySource::Measured,
            measured_at: Some(now.clone()),
        });
        status.latencies.sort_by(|one, other| one.to.cmp(&other.to));
    }

    /// Writes what the member reports. What it reports no more is no more told.
    fn tell_report(&self, status: &mut ForeignClusterStatus) {
        let Some(report) = &self.reported else { return };
        let told = std::mem::take(&mut status.reported_latencies);
        let mut told: BTreeMap<String, MemberLatency> =
            told.into_iter().map(|each| (each.to.clone(), each)).collect();
        let latencies = report.latencies().iter().map(|(to, time)| {
            let before = told.remove(to).filter(|before| !RoundTrip::is_news(Some(before.rtt.0), *time));
            before.unwrap_or_else(|| MemberLatency {
                to: to.clone(),
                rtt: whole(*time),
                measured_at: report.observed_at().map(Time),
            })
        });
        status.reported_latencies = latencies.collect();
    }
}

/// Whole hundredths of a millisecond: more is noise.
fn whole(time: Duration) -> portolan_api::Duration {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    portolan_api::Duration::from_micros((micros + 5) / 10 * 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Observed {
        let mut round_trip = RoundTrip::default();
        round_trip.measure(Duration::from_millis(milliseconds));
        Observed { round_trip: Some(("hub".into(), round_trip)), ..Observed::default() }
    }

    #[test]
    fn a_round_trip_time_is_told_again_only_when_it_has_changed_noticeably() {
        let time = |seconds| Time(jiff_time(seconds));
        let mut status = ForeignClusterStatus::default();
        at(20).tell(&mut status, &time(1));
        let told = status.clone();
        assert_eq!(told.latencies[0].rtt, portolan_api::Duration::from_millis(20));
        at(22).tell(&mut status, &time(2));
        assert_eq!(status, told, "a tenth more is no news");
        at(40).tell(&mut status, &time(3));
        assert_eq!(status.latencies.len(), 1);
        assert_eq!(status.latencies[0].rtt, portolan_api::Duration::from_millis(40));
        assert_eq!(status.latencies[0].measured_at, Some(time(3)));
    }

    #[test]
    fn what_a_member_reports_is_told_beside_what_the_hub_measures_and_goes_when_it_grows_old() {
        let reporting = |latencies: serde_json::Value| {
            let report = serde_json::json!({"observedAt": "2026-01-01T00:00:00Z", "latencies": latencies});
            let report = portolan_core::report::judge(&serde_json::from_value(report).unwrap(), |_| true);
            Observed { reported: Some(report), ..at(20) }
        };
        let all = |status: &ForeignClusterStatus| -> Vec<(String, String)> {
            let each = |each: &MemberLatency| (each.to.clone(), each.rtt.to_string());
            status.reported_latencies.iter().map(each).collect()
        };
        let rome = [("rome".to_owned(), "12ms".to_owned())];
        let now = Time(jiff_time(1));
        let mut status = ForeignClusterStatus::default();
        reporting(serde_json::json!([{"to": "rome", "rtt": "12ms"}])).tell(&mut status, &now);
        assert_eq!(all(&status), rome);
        let own: Vec<&str> = status.latencies.iter().map(|each| each.to.as_str()).collect();
        assert_eq!(own, ["hub"], "what is reported stands apart");
        reporting(serde_json::json!([{"to": "rome", "rtt": "13ms"}])).tell(&mut status, &now);
        assert_eq!(all(&status), rome, "a tenth more is no news");
        at(20).tell(&mut status, &now);
        assert_eq!(all(&status), rome, "a hub that has just begun has not asked yet");
        Observed { reported: Some(Report::default()), ..at(20) }.tell(&mut status, &now);
        assert_eq!(all(&status), []);
        assert_eq!(status.latencies.len(), 1);
    }

    fn jiff_time(seconds: i64) -> k8s_openapi::jiff::Timestamp {
        k8s_openapi::jiff::Timestamp::from_second(seconds).unwrap()
    }
}
