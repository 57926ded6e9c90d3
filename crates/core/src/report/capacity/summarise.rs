//! What a member tells of its capacity.

use super::rooms::{Rooms, divide};
use super::{ALWAYS_TOLD, BYTES_AT_MOST, RESOURCES_AT_MOST, TAINTS_AT_MOST};
use crate::capacity::{Amounts, CPU, ClusterIndex, MEMORY, NodeRoom, PODS, milli};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use portolan_api::clusterreport::{
    CapacityRequest, GROUPS_AT_MOST, NODE_LABELS_AT_MOST, ROOMS_AT_MOST, ReportedCapacity, ReportedNodes,
    ReportedRoom,
};
use portolan_api::foreigncluster::NodeCount;
use portolan_api::placement::{ClusterTaint, Resources, TaintEffect};
use std::collections::{BTreeMap, BTreeSet};

/// How old a summary grows that stands: much younger than one that does not count any more.
const RENEWED_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// What is free has changed if it differs by more than one of so many parts of what there is.
const NOTICEABLE: i64 = 50;

/// What the nodes of a group have in common.
type Traits = (BTreeMap<String, String>, Vec<(String, String, String)>);

/// The capacity of a cluster, where pods up to this version were counted.
#[must_use]
pub fn summarise(
    index: &ClusterIndex,
    request: &CapacityRequest,
    pods_version: u64,
    now: Timestamp,
) -> ReportedCapacity {
    let labels = told_labels(request);
    let rooms: Vec<NodeRoom<'_>> = index.rooms().collect();
    let resources = told_resources(&rooms);
    let mut groups: BTreeMap<Traits, Vec<usize>> = BTreeMap::new();
    for (node, room) in rooms.iter().enumerate() {
        groups.entry(traits(room, &labels)).or_default().push(node);
    }
    let mut groups: Vec<(Traits, Vec<usize>)> = groups.into_iter().collect();
    // The largest first: those that are too many have the fewest nodes.
    groups.sort_by_key(|(_, nodes)| std::cmp::Reverse(nodes.len()));
    groups.retain(|((_, taints), _)| taints.len() <= TAINTS_AT_MOST);
    groups.truncate(GROUPS_AT_MOST);
    let free: Vec<Vec<i64>> =
        rooms.iter().map(|room| resources.iter().map(|name| room.free.get(name)).collect()).collect();
    let most = |name: &String| rooms.iter().map(|room| room.allocatable.get(name)).max().unwrap_or(0);
    let scale: Vec<i64> = resources.iter().map(most).collect();
    let totals = index.summary();
    let mut summary = ReportedCapacity {
        observed_at: Time(now),
        pods_resource_version: pods_version.to_string(),
        node_labels: labels.into_iter().collect(),
        nodes: NodeCount { total: count(totals.nodes), ready: count(totals.ready) },
        omitted_nodes: 0,
        pods: count(totals.pods),
        pending_pods: count(totals.pending_pods),
        capacity: of_told(&totals.capacity, &resources),
        allocated: of_told(&totals.allocated, &resources),
        groups: Vec::new(),
    };
    let (traits, members): (Vec<Traits>, Vec<Vec<usize>>) = groups.into_iter().unzip();
    let mut most = ROOMS_AT_MOST;
    loop {
        let divided = divide(members.clone(), &free, &scale, most);
        let told = |(traits, divided): (&Traits, Vec<Rooms>)| group(traits, &divided, &rooms, &resources);
        summary.groups = traits.iter().zip(divided).map(told).collect();
        if bytes(&summary) <= BYTES_AT_MOST || most <= GROUPS_AT_MOST {
            break;
        }
        most = most * 3 / 4;
    }
    while !summary.groups.is_empty() && bytes(&summary) > BYTES_AT_MOST {
        summary.groups.pop();
    }
    let in_groups: i32 = summary.groups.iter().flat_map(|group| &group.rooms).map(|room| room.nodes).sum();
    summary.omitted_nodes = count(rooms.len()).saturating_sub(in_groups);
    summary
}

/// Whether what is told now differs by enough from what was told before, or that has grown old. `own_version` is the version of the
/// latest pod that belongs to a hub: which of those are counted is always to be told.
#[must_use]
pub fn is_news(before: &ReportedCapacity, now: &ReportedCapacity, own_version: u64) -> bool {
    let age = now.observed_at.0.duration_since(before.observed_at.0);
    if age >= RENEWED_AFTER || age.is_negative() {
        return true;
    }
    if before.pods_resource_version.parse::<u64>().is_ok_and(|told| told < own_version) {
        return true;
    }
    let frame = |summary: &ReportedCapacity| {
        let of =
            |group: &ReportedNodes| (group.labels.clone(), group.taints.clone(), group.allocatable.clone());
        (summary.node_labels.clone(), summary.nodes, summary.groups.iter().map(of).collect::<Vec<_>>())
    };
    frame(before) != frame(now)
        || before.groups.iter().zip(&now.groups).any(|(before, now)| differs(before, now))
}

/// Whether noticeably more or less is free on the nodes of a group.
fn differs(before: &ReportedNodes, now: &ReportedNodes) -> bool {
    let read = |resources: &Resources, name: &str| {
        resources.get(name).and_then(|quantity| milli(&quantity.0).ok()).unwrap_or(0)
    };
    let free = |group: &ReportedNodes, name: &str| -> i128 {
        let of = |room: &ReportedRoom| i128::from(read(&room.free, name)) * i128::from(room.nodes);
        group.rooms.iter().map(of).sum()
    };
    now.allocatable.keys().any(|name| {
        let difference = (free(before, name) - free(now, name)).abs();
        difference > i128::from(read(&now.allocatable, name) / NOTICEABLE)
    })
}

fn told_labels(request: &CapacityRequest) -> BTreeSet<String> {
    let asked = request.node_labels.iter().take(NODE_LABELS_AT_MOST).cloned();
    ALWAYS_TOLD.iter().map(|label| (*label).to_owned()).chain(asked).collect()
}

fn told_resources(rooms: &[NodeRoom<'_>]) -> Vec<String> {
    let mut offered: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, _) in rooms.iter().flat_map(|room| room.allocatable.iter()).filter(|(_, milli)| *milli > 0) {
        *offered.entry(name).or_default() += 1;
    }
    let first = [CPU, MEMORY, PODS];
    let mut others: Vec<(&str, usize)> =
        offered.into_iter().filter(|(name, _)| !first.contains(name)).collect();
    others.sort_by_key(|(_, nodes)| std::cmp::Reverse(*nodes));
    let others = others.into_iter().map(|(name, _)| name);
    first.into_iter().chain(others).take(RESOURCES_AT_MOST).map(str::to_owned).collect()
}

fn traits(room: &NodeRoom<'_>, told: &BTreeSet<String>) -> Traits {
    let labels = room.labels.iter().filter(|(key, _)| told.contains(*key));
    let taints =
        room.taints.iter().filter(|taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute"));
    let taints: BTreeSet<_> = taints
        .map(|taint| (taint.key.clone(), taint.effect.clone(), taint.value.clone().unwrap_or_default()))
        .collect();
    (labels.map(|(key, value)| (key.clone(), value.clone())).collect(), taints.into_iter().collect())
}

fn group(traits: &Traits, divided: &[Rooms], rooms: &[NodeRoom<'_>], resources: &[String]) -> ReportedNodes {
    let (labels, taints) = traits;
    let taint = |(key, effect, value): &(String, String, String)| ClusterTaint {
        key: key.clone(),
        value: Some(value.clone()).filter(|value| !value.is_empty()),
        effect: if effect == "NoExecute" { TaintEffect::NoExecute } else { TaintEffect::NoSchedule },
    };
    let mut allocatable = Amounts::default();
    for room in divided.iter().flat_map(|rooms| &rooms.nodes).filter_map(|node| rooms.get(*node)) {
        allocatable.add(room.allocatable, 1);
    }
    let told = |each: &Rooms| {
        let mut free = Amounts::default();
        for (name, milli) in resources.iter().zip(&each.free).filter(|(_, milli)| **milli > 0) {
            free.set(name, *milli);
        }
        ReportedRoom { nodes: count(each.nodes.len()), free: free.quantities() }
    };
    ReportedNodes {
        labels: labels.clone(),
        taints: taints.iter().map(taint).collect(),
        allocatable: of_told(&allocatable, resources),
        rooms: divided.iter().map(told).collect(),
    }
}

fn of_told(amounts: &Amounts, resources: &[String]) -> Resources {
    let mut told = amounts.clone();
    told.retain(|name| resources.iter().any(|each| each == name));
    told.quantities()
}

fn bytes(summary: &ReportedCapacity) -> usize {
    serde_json::to_vec(summary).map_or(usize::MAX, |json| json.len())
}

fn count(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
