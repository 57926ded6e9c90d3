//! Round-trip times of a fleet.

use crate::scenario::{Hub, Latency};
use portolan_api::ForeignCluster;
use portolan_api::duration::Duration;
use portolan_api::foreigncluster::{ClusterType, StaticLatency};
use portolan_control::fleet::HUB;
use portolan_core::report::agreed;
use std::collections::BTreeMap;

/// Where the hub is, and the round-trip times between the sites that are known. What a spec says goes before what the hub measured,
/// and that before what members report, as in the controllers.
pub(super) fn distances(
    clusters: &[&ForeignCluster],
    clouds: &[(&str, &[StaticLatency])],
) -> (Hub, Vec<Latency>) {
    let name = |cluster: &ForeignCluster| cluster.metadata.name.clone().unwrap_or_default();
    let local = clusters.iter().find(|cluster| cluster.spec.type_ == ClusterType::Local);
    let hub = local.map_or_else(|| HUB.to_owned(), |cluster| name(cluster));
    let is_known = |site: &str| {
        site == hub
            || clouds.iter().any(|(name, _)| *name == site)
            || clusters.iter().any(|cluster| name(cluster) == site)
    };
    let mut found: BTreeMap<(String, String), Duration> = BTreeMap::new();
    let mut note = |from: &str, to: &str, rtt: Duration| {
        if from != to && is_known(from) && is_known(to) {
            let pair = if from < to { (from, to) } else { (to, from) };
            found.insert((pair.0.to_owned(), pair.1.to_owned()), rtt);
        }
    };
    for cluster in clusters {
        for measured in cluster.status.iter().flat_map(|status| &status.latencies) {
            note(&name(cluster), &measured.to, measured.rtt);
        }
    }
    for cluster in clusters {
        cluster.spec.latencies.iter().for_each(|given| note(&name(cluster), &given.to, given.rtt));
    }
    for (from, latencies) in clouds {
        latencies.iter().for_each(|given| note(from, &given.to, given.rtt));
    }
    let reported = clusters.iter().flat_map(|cluster| {
        let from = cluster.metadata.name.as_deref().unwrap_or_default();
        let all = cluster.status.iter().flat_map(|status| &status.reported_latencies);
        all.map(move |each| (from, each.to.as_str(), each.rtt.0))
    });
    let reported = reported.filter(|(from, to, _)| from != to && is_known(from) && is_known(to));
    let from_hub = |site: &str| {
        let pair = if site < hub.as_str() { (site, hub.as_str()) } else { (hub.as_str(), site) };
        found.get(&(pair.0.to_owned(), pair.1.to_owned())).map(|rtt| rtt.0)
    };
    for ((one, other), time) in agreed(reported, from_hub) {
        found.entry((one.to_owned(), other.to_owned())).or_insert(Duration(time));
    }
    let latencies = found.into_iter().map(|(between, rtt)| Latency { between, rtt }).collect();
    (Hub { site: Some(hub) }, latencies)
}
