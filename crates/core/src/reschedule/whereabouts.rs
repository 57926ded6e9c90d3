//! Which clusters of a workload are home, and which only stand in.

use super::{Held, Home};
use crate::placement::{Candidate, PlacementRequest, Standing};
use portolan_api::placement::{PlacementCause, PlacementPolicy, PlacementStatus, ReplicasMode};
use std::collections::BTreeMap;

/// Whether a cluster only stands in until there is room at home.
///
/// One that took over for a location which the workload no longer asks for does not: its replicas go where they are
/// asked for at once, as the user said.
#[must_use]
pub fn stands_in(request: &PlacementRequest, placed: &PlacementStatus, cloud: bool) -> bool {
    use PlacementCause::{Bursting, Cloud, Policy, Replacement, Substitution};
    let locations = &request.placement.locations;
    let affine = request.placement.effective_policy() == PlacementPolicy::ClusterAffinity;
    let asked_for = placed.substitute_for.as_ref().is_none_or(|at| !affine || locations.contains(at));
    let cause = match placed.cause {
        Some(Substitution | Bursting | Cloud | Replacement) => asked_for,
        Some(Policy) => cloud && !affine,
        _ => false,
    };
    placed.replicas > 0 && cause && !locations.contains(&placed.cluster)
}

/// What each cluster holds of a workload, how many replicas are to leave each, and what each home lacks and has
/// room for.
#[must_use]
pub fn whereabouts(
    request: &PlacementRequest,
    candidates: &[Candidate],
    placements: &[PlacementStatus],
) -> (BTreeMap<String, Held>, BTreeMap<String, u32>, BTreeMap<String, Home>) {
    let candidate = |name: &str| candidates.iter().find(|each| each.name() == name);
    let count = |number: i32| u32::try_from(number).unwrap_or(0);
    let mut held = BTreeMap::new();
    for placed in placements.iter().filter(|placed| placed.replicas > 0) {
        let site = candidate(&placed.cluster);
        let cloud = site.is_some_and(|candidate| candidate.site.cloud);
        let each = Held {
            replicas: count(placed.replicas),
            ready: count(placed.ready_replicas),
            away: stands_in(request, placed, cloud),
            cloud,
            reachable: site.is_some_and(|candidate| !candidate.silent),
        };
        held.insert(placed.cluster.clone(), each);
    }
    let away: u32 = held.values().filter(|each| each.away).map(|each| each.replicas).sum();
    let affine = request.placement.effective_policy() == PlacementPolicy::ClusterAffinity;
    let (mut leaving, mut homes) = (BTreeMap::new(), BTreeMap::new());
    for candidate in candidates {
        let name = candidate.name();
        let decided = held.get(name).map_or(0, |held| held.replicas);
        if !candidate.silent && candidate.running > decided {
            leaving.insert(name.to_owned(), candidate.running - decided);
        }
        let location = request.placement.locations.iter().any(|location| location == name);
        let is_home = if affine { location } else { !candidate.site.cloud };
        let Standing::Feasible { max_replicas, .. } = candidate.stands(request, candidates) else { continue };
        if !is_home || held.get(name).is_some_and(|held| held.away) {
            continue;
        }
        let lacks = match request.mode {
            ReplicasMode::PerLocation => request.replicas.saturating_sub(candidate.reserved).min(away),
            ReplicasMode::Total => away,
        };
        homes.insert(name.to_owned(), Home { lacks, fits: max_replicas.saturating_sub(candidate.reserved) });
    }
    (held, leaving, homes)
}
