//! What a hub believes of a summary.

use super::{ALWAYS_TOLD, TAINTS_AT_MOST};
use crate::capacity::{Amounts, ClusterSummary, NodeFacts, NodeGroup, ReportedRoom};
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use portolan_api::clusterreport::{
    GROUPS_AT_MOST, NODE_LABELS_AT_MOST, ROOMS_AT_MOST, ReportedCapacity, ReportedNodes, ReportedRoom as Room,
};
use portolan_api::placement::{ClusterTaint, Resources, TaintEffect};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A summary that is older than this does not count.
const STALE_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// Clocks of members may be this much ahead. A summary from a later time does not count.
const AHEAD_AT_MOST: SignedDuration = SignedDuration::from_mins(1);

/// Kubernetes is made for 5,000 nodes, and providers offer up to 100,000: no cluster has more.
const NODES_AT_MOST: u32 = 100_000;

/// The longest key and value of a label or taint.
const LONGEST_KEY: usize = 253 + 1 + 63;
const LONGEST_VALUE: usize = 63;

/// Why a summary does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotASummary {
    /// It is of the past, or of the future.
    #[error(
        "its summary of capacity is of {0}, which is more than 5 minutes ago or 1 minute ahead: does its controller run with \
         --report-capacity, and is its clock right?"
    )]
    NotOfNow(Timestamp),
    /// It does not say which pods are counted.
    #[error("its summary of capacity names no resourceVersion of pods that is a number: {0:?}")]
    NoVersion(String),
}

/// Reads a summary. What cannot be is left out, so that whoever exaggerates loses the room and no more: groups and rooms beyond
/// those that a summary may have, nodes beyond those of any cluster, and amounts that no machine has.
///
/// # Errors
/// The summary does not count.
pub fn read(summary: &ReportedCapacity, now: Timestamp) -> Result<ReportedRoom, NotASummary> {
    let age = now.duration_since(summary.observed_at.0);
    if !(-AHEAD_AT_MOST..STALE_AFTER).contains(&age) {
        return Err(NotASummary::NotOfNow(summary.observed_at.0));
    }
    let version = &summary.pods_resource_version;
    let pods_version =
        version.parse::<u64>().map_err(|_| NotASummary::NoVersion(version.chars().take(40).collect()))?;
    let told = summary.node_labels.iter().filter(|label| label.len() <= LONGEST_KEY);
    let told: BTreeSet<String> = told.take(ALWAYS_TOLD.len() + NODE_LABELS_AT_MOST).cloned().collect();
    let told_labels = Arc::new(told);
    let (mut left, mut groups) = (NODES_AT_MOST, Vec::new());
    let rooms = summary.groups.iter().take(GROUPS_AT_MOST).filter(|group| is_possible(group)).enumerate();
    let rooms =
        rooms.flat_map(|(place, group)| group.rooms.iter().enumerate().map(move |room| (place, group, room)));
    for (place, group, (number, room)) in rooms.take(ROOMS_AT_MOST) {
        let nodes = u32::try_from(room.nodes).ok().filter(|nodes| *nodes <= left).unwrap_or(0);
        let facts = facts(format!("group-{place}-{number}"), nodes, group, room, &told_labels);
        if nodes > 0 && !facts.is_implausible() {
            left -= nodes;
            groups.push(facts);
        }
    }
    let totals = totals(summary, &groups);
    Ok(ReportedRoom { totals, groups, told_labels, omitted: count(summary.omitted_nodes), pods_version })
}

/// Whether there can be such nodes.
fn is_possible(group: &ReportedNodes) -> bool {
    let can_be = |key: &str, value: &str| key.len() <= LONGEST_KEY && value.len() <= LONGEST_VALUE;
    group.taints.len() <= TAINTS_AT_MOST
        && group.labels.iter().all(|(key, value)| can_be(key, value))
        && group.taints.iter().all(|taint| can_be(&taint.key, taint.value.as_deref().unwrap_or_default()))
}

fn facts(
    name: String,
    nodes: u32,
    group: &ReportedNodes,
    room: &Room,
    told_labels: &Arc<BTreeSet<String>>,
) -> NodeFacts {
    let labels = group.labels.iter().filter(|(key, _)| told_labels.contains(*key));
    let mut facts = NodeFacts {
        name,
        allocatable: amounts(&room.free),
        ready: true,
        taints: group.taints.iter().map(taint).collect(),
        labels: labels.map(|(key, value)| (key.clone(), value.clone())).collect(),
        group: Some(NodeGroup { nodes, told_labels: Arc::clone(told_labels) }),
        ..NodeFacts::default()
    };
    facts.bound_resources();
    facts
}

fn taint(taint: &ClusterTaint) -> Taint {
    let effect = match taint.effect {
        TaintEffect::NoSchedule => "NoSchedule",
        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
        TaintEffect::NoExecute => "NoExecute",
    };
    Taint {
        key: taint.key.clone(),
        value: taint.value.clone(),
        effect: effect.to_owned(),
        ..Taint::default()
    }
}

/// The cluster in numbers: what is available is what groups have free.
fn totals(summary: &ReportedCapacity, groups: &[NodeFacts]) -> ClusterSummary {
    let mut totals = ClusterSummary {
        nodes: count(summary.nodes.total),
        ready: count(summary.nodes.ready),
        capacity: shown(&summary.capacity),
        allocated: shown(&summary.allocated),
        pods: count(summary.pods),
        pending_pods: count(summary.pending_pods),
        observed_at: Some(summary.observed_at.0),
        ..ClusterSummary::default()
    };
    for group in &summary.groups {
        totals.usable.add(&shown(&group.allocatable), 1);
    }
    for facts in groups {
        let nodes = facts.group.as_ref().map_or(1, |group| i64::from(group.nodes));
        totals.usable_free.add(&facts.allocatable, nodes);
        if facts.taints.iter().all(|taint| taint.effect == "PreferNoSchedule") {
            totals.available.add(&facts.allocatable, nodes);
        }
    }
    totals
}

/// Amounts of which no more is wanted than to show them.
fn shown(resources: &Resources) -> Amounts {
    let mut facts = NodeFacts { allocatable: amounts(resources), ..NodeFacts::default() };
    facts.bound_resources();
    facts.allocatable.not_below_zero()
}

/// What cannot be read is nothing: no room is invented.
fn amounts(resources: &Resources) -> Amounts {
    Amounts::parse(resources).unwrap_or_default()
}

fn count(number: i32) -> usize {
    usize::try_from(number).unwrap_or(0)
}
