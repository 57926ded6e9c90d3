//! The members of the fleet, as a table.

use crate::failure::Failure;
use crate::human::{age, round_trip, share};
use comfy_table::Table;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use portolan_api::ForeignCluster;
use portolan_api::conditions::{self, ConditionType};
use portolan_api::foreigncluster::{ClusterType, ForeignClusterStatus, LatencySource};
use portolan_control::names::LEAVING_TAINT;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

const REGION: &str = "topology.kubernetes.io/region";

/// One row a cluster.
pub(super) fn table(objects: &[Value], wide: bool, now: Timestamp) -> Result<Table, Failure> {
    let mut header =
        vec!["NAME", "READY", "NODES", "CPU", "MEMORY", "PODS", "PENDING", "RTT", "VERSION", "AGE"];
    if wide {
        header.extend(["REGION", "TYPE", "TAINTS", "LAST-SEEN", "ID", "MESSAGE"]);
    }
    let mut table = crate::table::table(&header);
    for object in objects {
        let cluster: ForeignCluster = serde_json::from_value(object.clone()).map_err(Failure::other)?;
        table.add_row(row(&cluster, wide, now));
    }
    Ok(table)
}

fn row(cluster: &ForeignCluster, wide: bool, now: Timestamp) -> Vec<String> {
    let status = cluster.status.clone().unwrap_or_default();
    let (ready, message) = health(cluster);
    let ready = std::iter::once(ready.as_str()).chain(marks(cluster)).collect::<Vec<_>>().join(",");
    let dash = || "-".to_owned();
    let used = |name: &str| share(name, &status.allocated, &status.capacity);
    let mut cells = vec![
        cluster.metadata.name.clone().unwrap_or_default(),
        ready,
        status.nodes.map_or_else(dash, |nodes| format!("{}/{}", nodes.ready, nodes.total)),
        used("cpu"),
        used("memory"),
        used("pods"),
        status.pending_pods.map_or_else(dash, |count| count.to_string()),
        latencies(cluster, &status, wide),
        status.kubernetes_version.clone().unwrap_or_else(dash),
        age(cluster.metadata.creation_timestamp.as_ref().map(|time| time.0), now),
    ];
    if wide {
        let labels = cluster.metadata.labels.clone().unwrap_or_default();
        let kind = match (cluster.spec.type_, cluster.spec.cloud) {
            (ClusterType::Local, _) => "Local",
            (ClusterType::Remote, true) => "Cloud",
            (ClusterType::Remote, false) => "Remote",
        };
        let taints: Vec<_> =
            cluster.spec.taints.iter().map(|taint| format!("{}:{:?}", taint.key, taint.effect)).collect();
        cells.extend([
            labels.get(REGION).cloned().unwrap_or_else(dash),
            kind.to_owned(),
            if taints.is_empty() { dash() } else { taints.join(",") },
            status.last_seen.map_or_else(dash, |seen| age(Some(seen.0), now)),
            cluster.spec.cluster_identity.cluster_id.clone(),
            message,
        ]);
    }
    cells
}

/// Whether a cluster is well, in one word, and why.
pub(in crate::commands) fn health(cluster: &ForeignCluster) -> (String, String) {
    match condition(cluster, ConditionType::Ready) {
        Some(ready) => (ready.status.clone(), ready.message.clone()),
        None => ("Unknown".to_owned(), "no controller has looked at it yet".to_owned()),
    }
}

/// What else a user should know about a cluster, in one word each.
pub(in crate::commands) fn marks(cluster: &ForeignCluster) -> Vec<&'static str> {
    let tainted = cluster.spec.taints.iter().any(|taint| taint.key == LEAVING_TAINT);
    let all = [
        (cluster.spec.unschedulable, "Cordoned"),
        (tainted || cluster.metadata.deletion_timestamp.is_some(), "Leaving"),
        (is_orphaned(cluster), "Orphans"),
    ];
    all.into_iter().filter(|(holds, _)| *holds).map(|(_, mark)| mark).collect()
}

/// Whether a cluster has objects that the hub placed and has no object for any more.
pub(in crate::commands) fn is_orphaned(cluster: &ForeignCluster) -> bool {
    condition(cluster, ConditionType::Orphaned).is_some_and(|orphaned| orphaned.status == "True")
}

fn condition(cluster: &ForeignCluster, type_: ConditionType) -> Option<&Condition> {
    conditions::find(&cluster.status.as_ref()?.conditions, type_)
}

/// The round-trip times between a cluster and others, the nearest first.
pub(in crate::commands) fn distances(cluster: &ForeignCluster) -> Vec<String> {
    round_trips(cluster, &cluster.status.clone().unwrap_or_default())
}

/// The nearest other clusters; in wide form all, with where the number comes from.
fn latencies(cluster: &ForeignCluster, status: &ForeignClusterStatus, wide: bool) -> String {
    let mut texts = round_trips(cluster, status);
    texts.truncate(if wide { usize::MAX } else { 1 });
    if texts.is_empty() { "-".to_owned() } else { texts.join(",") }
}

/// Of several times to one cluster, that which decisions use: a given one before a measured one, and that before a reported one.
fn round_trips(cluster: &ForeignCluster, status: &ForeignClusterStatus) -> Vec<String> {
    let reported = status.reported_latencies.iter().map(|each| (&each.to, each.rtt, LatencySource::Measured));
    let measured = status.latencies.iter().map(|each| (&each.to, each.rtt, each.source));
    let given = cluster.spec.latencies.iter().map(|each| (&each.to, each.rtt, LatencySource::Static));
    let mut all: BTreeMap<&str, (Duration, LatencySource)> = BTreeMap::new();
    for (to, rtt, source) in reported.chain(measured).chain(given) {
        all.insert(to, (rtt.0, source));
    }
    let mut all: Vec<_> = all.into_iter().map(|(to, (rtt, source))| (rtt, to, source)).collect();
    all.sort_by_key(|(rtt, to, _)| (*rtt, *to));
    let mark = |source: LatencySource| match source {
        LatencySource::Measured => "",
        LatencySource::Static => "=",
    };
    all.iter().map(|(rtt, to, source)| format!("{to}:{}{}", mark(*source), round_trip(*rtt))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn of_several_times_to_one_cluster_that_is_shown_which_decisions_use() {
        let cluster: ForeignCluster = serde_json::from_value(json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster", "metadata": {"name": "paris"},
            "spec": {
                "clusterIdentity": {"clusterID": "p", "clusterName": "paris"}, "latencies": [{"to": "rome", "rtt": "9ms"}],
            },
            "status": {
                "latencies": [{"to": "hub", "rtt": "5ms", "source": "Measured"}],
                "reportedLatencies": [{"to": "hub", "rtt": "1ms"}, {"to": "lille", "rtt": "2ms"}, {"to": "rome", "rtt": "1ms"}],
            },
        }))
        .unwrap();
        let shown = |to: &str, mark: &str, time: u64| {
            format!("{to}:{mark}{}", round_trip(Duration::from_millis(time)))
        };
        assert_eq!(distances(&cluster), [shown("lille", "", 2), shown("hub", "", 5), shown("rome", "=", 9)]);
    }
}
