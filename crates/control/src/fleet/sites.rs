//! What placement sees of each ForeignCluster, made once for all decisions.

use super::MemberEvent;
use crate::names::{ALLOW_ADOPTION_ANNOTATION, CONFIRMED_LOST_ANNOTATION};
use portolan_api::ForeignCluster;
use portolan_api::conditions::{self, ConditionType};
use portolan_core::placement::Site;
use portolan_core::report::agreed;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The name by which the hub is told in round-trip times, unless it is a member of its own fleet.
pub const HUB: &str = "hub";

/// What has changed that a decision could depend on.
pub(super) fn news(before: Option<&ForeignCluster>, after: &ForeignCluster) -> Option<MemberEvent> {
    let latencies = |cluster: &ForeignCluster| {
        let measured = cluster.status.iter().flat_map(|status| &status.latencies);
        let measured = measured.map(|each| (each.to.clone(), each.rtt));
        let reported = cluster.status.iter().flat_map(|status| &status.reported_latencies);
        let reported = reported.map(|each| (each.to.clone(), each.rtt));
        (measured.collect::<Vec<_>>(), reported.collect::<Vec<_>>())
    };
    let Some(before) = before else { return Some(MemberEvent::Health) };
    let differs = before.spec != after.spec
        || before.metadata.labels != after.metadata.labels
        || before.metadata.uid != after.metadata.uid
        || before.metadata.deletion_timestamp != after.metadata.deletion_timestamp
        || is_confirmed_lost(before) != is_confirmed_lost(after)
        || allowed_adoption(before) != allowed_adoption(after)
        || reach(before) != reach(after);
    if differs {
        Some(MemberEvent::Health)
    } else {
        (latencies(before) != latencies(after)).then_some(MemberEvent::Latency)
    }
}

/// What is on record of its reach. The time until its replicas are replaced counts from there.
fn reach(cluster: &ForeignCluster) -> [Option<&str>; 2] {
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    [ConditionType::Reachable, ConditionType::SilenceDoubted]
        .map(|type_| conditions::find(conditions, type_).map(|found| found.status.as_str()))
}

/// Looks at all ForeignClusters. Round-trip times are told to both sides of each pair; what a spec says goes before what the hub
/// measured, and that before what members [report](agreed).
pub(super) fn sites<'a>(
    clusters: impl Iterator<Item = &'a ForeignCluster> + Clone,
) -> BTreeMap<String, Arc<Site>> {
    let name = |cluster: &ForeignCluster| cluster.metadata.name.clone().unwrap_or_default();
    let hub = hub_name(clusters.clone());
    let mut rtt: BTreeMap<String, BTreeMap<String, Duration>> = BTreeMap::new();
    let mut tell = |from: &str, to: &str, time: Duration| {
        rtt.entry(from.to_owned()).or_default().insert(to.to_owned(), time);
        rtt.entry(to.to_owned()).or_default().insert(from.to_owned(), time);
    };
    for cluster in clusters.clone() {
        for measured in cluster.status.iter().flat_map(|status| &status.latencies) {
            tell(&name(cluster), &measured.to, measured.rtt.0);
        }
    }
    for cluster in clusters.clone() {
        for given in &cluster.spec.latencies {
            tell(&name(cluster), &given.to, given.rtt.0);
        }
    }
    let reported = clusters.clone().flat_map(|cluster| {
        let from = cluster.metadata.name.as_deref().unwrap_or_default();
        let all = cluster.status.iter().flat_map(|status| &status.reported_latencies);
        all.map(move |each| (from, each.to.as_str(), each.rtt.0))
    });
    let known = |from: &str, to: &str| rtt.get(from)?.get(to).copied();
    let agreed = agreed(reported, |member| known(&hub, member)).into_iter();
    let unknown: Vec<_> = agreed.filter(|((one, other), _)| known(one, other).is_none()).collect();
    for ((one, other), time) in unknown {
        rtt.entry(one.to_owned()).or_default().insert(other.to_owned(), time);
        rtt.entry(other.to_owned()).or_default().insert(one.to_owned(), time);
    }
    let site = |cluster: &ForeignCluster| {
        let name = name(cluster);
        let rtt = rtt.get(&name).cloned().unwrap_or_default();
        let site = Site {
            name: name.clone(),
            labels: cluster.metadata.labels.clone().unwrap_or_default(),
            taints: cluster.spec.taints.clone(),
            from_hub: if name == hub { Some(Duration::ZERO) } else { rtt.get(&hub).copied() },
            rtt,
            cloud: cluster.spec.cloud,
        };
        (name, Arc::new(site))
    };
    clusters.map(site).collect()
}

/// What the hub is called in round-trip times: the name of its own ForeignCluster, if it has one.
pub(super) fn hub_name<'a>(mut clusters: impl Iterator<Item = &'a ForeignCluster>) -> String {
    let local =
        clusters.find(|cluster| cluster.spec.type_ == portolan_api::foreigncluster::ClusterType::Local);
    local.and_then(|cluster| cluster.metadata.name.clone()).unwrap_or_else(|| HUB.to_owned())
}

/// What an administrator lets workloads take over in a cluster.
pub(crate) fn allowed_adoption(cluster: &ForeignCluster) -> Option<&str> {
    let annotations = cluster.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(ALLOW_ADOPTION_ANNOTATION)).map(String::as_str)
}

/// Whether a user has confirmed that a cluster which does not answer is lost.
pub(crate) fn is_confirmed_lost(cluster: &ForeignCluster) -> bool {
    let annotations = cluster.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(CONFIRMED_LOST_ANNOTATION)).is_some_and(|value| value == "true")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cluster(reachable: &str, latency: &str) -> ForeignCluster {
        let condition = json!({"type": "Reachable", "status": reachable, "reason": "R", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let latency = json!({"to": "hub", "rtt": latency, "source": "Measured"});
        serde_json::from_value(json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster", "metadata": {"name": "a"},
            "spec": {"clusterIdentity": {"clusterID": "a", "clusterName": "a"}},
            "status": {"conditions": [condition], "latencies": [latency]},
        }))
        .unwrap()
    }

    #[test]
    fn of_two_members_that_report_their_distance_the_longer_time_counts_and_a_given_one_before_both() {
        let member = |name: &str, to: &str, rtt: &str, given: serde_json::Value| -> ForeignCluster {
            serde_json::from_value(json!({
                "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster", "metadata": {"name": name},
                "spec": {"clusterIdentity": {"clusterID": name, "clusterName": name}, "latencies": given},
                "status": {"reportedLatencies": [{"to": to, "rtt": rtt}]},
            }))
            .unwrap()
        };
        let rtt = |one: &ForeignCluster, other: &ForeignCluster| {
            let sites = sites([one, other].into_iter());
            assert_eq!(sites["a"].rtt["b"], sites["b"].rtt["a"]);
            sites["a"].rtt["b"]
        };
        let (near, far) = (member("a", "b", "1ms", json!([])), member("b", "a", "50ms", json!([])));
        assert_eq!(rtt(&near, &far), Duration::from_millis(50));
        assert_eq!(rtt(&far, &near), Duration::from_millis(50));
        let given = member("a", "b", "1ms", json!([{"to": "b", "rtt": "9ms"}]));
        assert_eq!(rtt(&given, &far), Duration::from_millis(9));
    }

    #[test]
    fn a_member_alone_does_not_come_nearer_to_another_than_their_distances_from_the_hub_allow() {
        let member = |name: &str, from_hub: &str, reported: serde_json::Value| -> ForeignCluster {
            let measured = json!([{"to": "hub", "rtt": from_hub, "source": "Measured"}]);
            serde_json::from_value(json!({
                "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster", "metadata": {"name": name},
                "spec": {"clusterIdentity": {"clusterID": name, "clusterName": name}},
                "status": {"latencies": measured, "reportedLatencies": reported},
            }))
            .unwrap()
        };
        let told = |to: &str, rtt: &str| json!([{"to": to, "rtt": rtt}]);
        let rtt = |a: &ForeignCluster, b: &ForeignCluster| sites([a, b].into_iter())["a"].rtt["b"];
        let (near, silent) = (member("a", "2ms", told("b", "1ms")), member("b", "30ms", json!([])));
        assert_eq!(rtt(&near, &silent), Duration::from_millis(28));
        let agreeing = member("b", "30ms", told("a", "3ms"));
        assert_eq!(rtt(&near, &agreeing), Duration::from_millis(3));
        let far = member("a", "2ms", told("b", "50ms"));
        assert_eq!(rtt(&far, &silent), Duration::from_millis(50));
        assert_eq!(sites([&far, &silent].into_iter())["a"].from_hub, Some(Duration::from_millis(2)));
    }

    #[test]
    fn a_reported_time_that_changes_is_news() {
        let reporting = |rtt: &str| {
            let mut cluster = cluster("True", "1ms");
            let reported = json!([{"to": "b", "rtt": rtt}]);
            let reported = serde_json::from_value(reported).unwrap();
            cluster.status.get_or_insert_default().reported_latencies = reported;
            cluster
        };
        let (one, other) = (reporting("5ms"), reporting("9ms"));
        assert_eq!(news(Some(&one), &other), Some(MemberEvent::Latency));
        assert_eq!(news(Some(&one), &cluster("True", "1ms")), Some(MemberEvent::Latency));
        assert_eq!(news(Some(&one), &one), None);
    }

    #[test]
    fn a_recorded_silence_is_news_to_those_whose_patience_counts_from_it() {
        let answers = cluster("True", "1ms");
        assert_eq!(news(Some(&answers), &cluster("Unknown", "1ms")), Some(MemberEvent::Health));
        assert_eq!(news(Some(&answers), &cluster("True", "9ms")), Some(MemberEvent::Latency));
        assert_eq!(news(Some(&answers), &answers), None);
    }
}
