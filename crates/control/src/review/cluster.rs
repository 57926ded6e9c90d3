//! One cluster's part in an answer.

use crate::driver::Reserved;
use portolan_api::Duration;
use portolan_api::placementreview::{
    ClusterReview, FreeRoom, ReservedRoom, ReviewDistance, ReviewFilter, ReviewRefusal,
};
use portolan_core::placement::{Account, Refusal};
use portolan_runtime::foreign_text;
use std::collections::BTreeMap;

/// So many clusters are told of one object; of the others, how many there are.
const TOLD: usize = 200;

/// What is told of a cluster in a plan: what it gets, and why.
pub(super) fn brief(account: &Account) -> ClusterReview {
    ClusterReview {
        cluster: account.cluster.clone(),
        cause: account.placed.as_ref().map(|placed| placed.cause),
        verdict: foreign_text(&account.verdict),
        ..ClusterReview::default()
    }
}

/// What is told of a cluster in an explanation: everything.
pub(super) fn full(account: &Account, reserved: Option<&Reserved>) -> ClusterReview {
    let filter = |each: &portolan_core::placement::Filter| ReviewFilter {
        name: each.name.to_owned(),
        passed: each.passed,
        message: foreign_text(&each.told),
    };
    let room = FreeRoom { cpu_millis: account.room.cpu, memory_bytes: account.room.memory / 1000 };
    let distance = account.distance.as_ref();
    let here = reserved.into_iter().flat_map(|reserved| &reserved.here);
    ClusterReview {
        filters: account.filters.iter().map(filter).collect(),
        fits: account.max_replicas.map(signed),
        free: account.max_replicas.map(|_| room),
        rank: account.rank.map(|rank| i32::try_from(rank).unwrap_or(i32::MAX)),
        traffic_milli_requests: account.traffic.map(|traffic| i64::try_from(traffic).unwrap_or(i64::MAX)),
        distance: distance.map(|(from, rtt)| ReviewDistance { from: from.clone(), rtt: Duration(*rtt) }),
        reserved: here
            .map(|(workload, count)| ReservedRoom { workload: workload.clone(), replicas: signed(*count) })
            .take(TOLD)
            .collect(),
        reserved_by_other_namespaces: reserved
            .map(|reserved| i64::try_from(reserved.elsewhere).unwrap_or(i64::MAX))
            .filter(|count| *count > 0),
        ..brief(account)
    }
}

/// Why clusters do not take what is pending, and which names no member has.
pub(super) fn refusals(
    refusals: &BTreeMap<String, Refusal>,
    accounts: &[Account],
    notes: &mut Vec<String>,
) -> Vec<ReviewRefusal> {
    let mut refusals = refusals.clone();
    let unknown = accounts.iter().filter_map(|each| Some((each.cluster.clone(), each.no_member.clone()?)));
    refusals.extend(unknown);
    let told = refusals.iter().map(|(cluster, why)| ReviewRefusal {
        cluster: cluster.clone(),
        reason: why.reason.into(),
        message: foreign_text(&why.message),
    });
    if refusals.len() > TOLD {
        notes.push(format!("{} more clusters do not take it either", refusals.len() - TOLD));
    }
    told.take(TOLD).collect()
}

/// Whether a cluster is asked for that no member is called.
pub(super) fn names_no_member(accounts: &[Account]) -> bool {
    accounts.iter().any(|account| account.no_member.is_some())
}

/// What is said if so many locations are to be found, and the fleet has fewer clusters.
pub(super) fn too_few(locations: usize, accounts: &[Account]) -> Option<String> {
    let clusters = accounts.iter().filter(|account| account.no_member.is_none()).count();
    if locations <= clusters {
        return None;
    }
    Some(match clusters {
        0 => "The fleet has no cluster: `portolan peer` adds one.".to_owned(),
        count => format!(
            "{locations} locations are asked for, and the fleet has {count} cluster{}: peer more, or lower \
             spec.numberOfLocations.",
            if count == 1 { "" } else { "s" }
        ),
    })
}

/// As many clusters as are told; those that hold something come first if there are too many.
pub(super) fn bounded(mut clusters: Vec<ClusterReview>, notes: &mut Vec<String>) -> Vec<ClusterReview> {
    if clusters.len() > TOLD {
        notes.push(format!("{} more clusters are not shown", clusters.len() - TOLD));
        clusters.sort_by_key(|each| (each.before == 0 && each.after == 0, each.cluster.clone()));
        clusters.truncate(TOLD);
    }
    clusters
}

/// What is told of clusters where nothing changes.
pub(super) fn as_it_is(before: &BTreeMap<String, u32>) -> Vec<ClusterReview> {
    let stays = |(cluster, count): (&String, &u32)| ClusterReview {
        cluster: cluster.clone(),
        before: signed(*count),
        after: signed(*count),
        verdict: "it stays as it is".to_owned(),
        ..ClusterReview::default()
    };
    before.iter().map(stays).collect()
}

pub(super) fn signed(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
