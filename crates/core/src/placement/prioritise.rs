//! Putting clusters in the order of a policy, and choosing the first of them.

use super::field::Field;
use super::{Candidate, PlacementRequest, Standing};
use crate::capacity::Room;
use portolan_api::placement::{ClusterSpread, PlacementPolicy, WhenUnsatisfiable};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A tenth of a request per second moves nothing.
const LITTLE_TRAFFIC: u64 = 100;

/// The clusters in the order of the policy, as many as there are locations.
pub(super) fn prioritise(
    policy: PlacementPolicy,
    request: &PlacementRequest,
    field: &Field<'_>,
) -> Vec<String> {
    let (spread, locations) = (&request.placement.spread, request.placement.effective_locations());
    // Where clusters are spread, any of them may be needed.
    let ranked = rank(policy, request, field, if spread.is_empty() { locations } else { usize::MAX });
    choose(&ranked, spread, locations)
}

/// What the policy needs and does not have, if clusters are put in order as worst-fit does instead.
pub(super) fn lacks_traffic(policy: PlacementPolicy, field: &Field<'_>) -> Option<&'static str> {
    let told = field.iter().any(|(candidate, _)| candidate.traffic.is_some());
    (policy == PlacementPolicy::TrafficAware && !told).then_some(
        "no cluster tells the traffic of a service that selects its pods, so clusters are chosen as worst-fit does: \
         measure the traffic there, or use worst-fit, best-fit or locations",
    )
}

/// The clusters that can hold replicas, in the order of the policy; of many, only the first ones.
///
/// A cluster that already holds replicas comes first: a decision is not taken anew because room has changed elsewhere;
/// only traffic that has moved elsewhere is followed. Clusters of the cloud come last, before them those with a taint that
/// discourages. Between, those that can hold all
/// replicas of a location come first, and then those that hold most: were it the roomiest, a location and the cluster that
/// stands in for it would change places with every replica that moves.
pub(super) fn rank<'a>(
    policy: PlacementPolicy,
    request: &PlacementRequest,
    field: &Field<'a>,
    most: usize,
) -> Vec<&'a Candidate> {
    let mut ranked: Vec<(&Candidate, u32, Room)> = field
        .iter()
        .filter_map(|(candidate, standing)| match standing {
            Standing::Feasible { max_replicas, room } => {
                (*max_replicas > 0).then_some((*candidate, *max_replicas, *room))
            }
            Standing::Evict(_) => None,
            Standing::NoNewReplicas(_) => {
                (candidate.keeps() > 0).then_some((*candidate, candidate.keeps(), Room::default()))
            }
        })
        .collect();
    let rooms = |room: &Room| (room.cpu, room.memory);
    let class = |candidate: &Candidate, max_replicas: u32| {
        let enough = Reverse(max_replicas >= request.replicas);
        let discouraged = candidate.is_discouraged(request);
        (
            Reverse(candidate.reserved > 0),
            candidate.site.cloud,
            discouraged,
            enough,
            Reverse(candidate.reserved),
        )
    };
    let policy = match lacks_traffic(policy, field) {
        Some(_) => PlacementPolicy::WorstFit,
        None => policy,
    };
    match policy {
        PlacementPolicy::WorstFit => keep_first(&mut ranked, most, |(candidate, max_replicas, room)| {
            (class(candidate, *max_replicas), Reverse(rooms(room)), candidate.name())
        }),
        PlacementPolicy::BestFit => {
            keep_first(&mut ranked, most, |(candidate, max_replicas, room)| {
                (class(candidate, *max_replicas), rooms(room), candidate.name())
            });
        }
        PlacementPolicy::TrafficAware => {
            keep_first(&mut ranked, most, |(candidate, max_replicas, room)| {
                let kept = candidate.reserved > 0
                    && matches!(field.get(candidate.name()), Some((_, Standing::NoNewReplicas(_))));
                let discouraged = candidate.is_discouraged(request);
                let enough = (candidate.site.cloud, discouraged, Reverse(*max_replicas >= request.replicas));
                (
                    Reverse(kept),
                    enough,
                    Reverse(attraction(candidate)),
                    Reverse(candidate.reserved),
                    Reverse(rooms(room)),
                    candidate.name(),
                )
            });
        }
        PlacementPolicy::ClusterAffinity => {}
    }
    ranked.into_iter().map(|(candidate, ..)| candidate).collect()
}

/// Puts the first ones in order and lets go of the rest. Of a thousand clusters a workload wants a few.
fn keep_first<T, K: Ord>(ranked: &mut Vec<T>, most: usize, key: impl Fn(&T) -> K) {
    if most < ranked.len() {
        ranked.select_nth_unstable_by_key(most, &key);
        ranked.truncate(most);
    }
    ranked.sort_unstable_by_key(key);
}

/// How strongly traffic draws replicas to a cluster. One that holds replicas keeps them until another one receives half as
/// much again, so that nothing moves back and forth; who does not tell counts as without traffic.
fn attraction(candidate: &Candidate) -> u64 {
    let traffic = candidate.traffic.unwrap_or(0);
    if candidate.reserved > 0 {
        traffic.saturating_add(traffic / 2).saturating_add(LITTLE_TRAFFIC)
    } else {
        traffic
    }
}

/// Takes clusters in order, keeping the spread: first so that every constraint holds, then, if there are not enough, so
/// that only those are broken that may be.
fn choose(ranked: &[&Candidate], spread: &[ClusterSpread], count: usize) -> Vec<String> {
    let strict: Vec<&ClusterSpread> =
        spread.iter().filter(|each| each.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule).collect();
    let mut chosen: Vec<&Candidate> = Vec::new();
    for constraints in [spread.iter().collect(), strict] {
        while chosen.len() < count {
            let free = |candidate: &&&Candidate| !chosen.iter().any(|each| each.name() == candidate.name());
            let fits = |candidate: &&&Candidate| {
                constraints.iter().all(|each| keeps(each, ranked, &chosen, candidate))
            };
            let Some(next) = ranked.iter().filter(free).find(fits) else { break };
            chosen.push(next);
        }
    }
    chosen.into_iter().map(|candidate| candidate.name().to_owned()).collect()
}

/// Whether one more cluster keeps a constraint.
fn keeps(spread: &ClusterSpread, ranked: &[&Candidate], chosen: &[&Candidate], next: &Candidate) -> bool {
    let domain = |candidate: &Candidate| candidate.site.labels.get(&spread.topology_key).cloned();
    let Some(own) = domain(next) else { return false };
    let mut counts: BTreeMap<String, i32> =
        ranked.iter().filter_map(|each| domain(each)).map(|each| (each, 0)).collect();
    for each in chosen.iter().filter_map(|each| domain(each)) {
        *counts.entry(each).or_insert(0) += 1;
    }
    let domains = i32::try_from(counts.len()).unwrap_or(i32::MAX);
    let too_few = spread.min_domains.is_some_and(|least| domains < least);
    let least = if too_few { 0 } else { counts.values().copied().min().unwrap_or(0) };
    counts.get(&own).copied().unwrap_or(0) + 1 - least <= spread.max_skew
}
