//! Replicas that found no place as the present spec asks for them, and stay where they run.
//!
//! An edit that cannot be satisfied, a cluster that is to be left or a node that is gone never cost a running replica:
//! only a replacement that is ready elsewhere does, or the wish for fewer.

use super::field::Field;
use super::{Candidate, Kept, KeptBecause, Placed, PlacementRequest, Standing};
use portolan_api::placement::{PlacementCause, PlacementPolicy, ReplicasMode};
use std::collections::BTreeMap;

/// Leaves in place what found no other one. Answers how many replicas stay.
pub(super) fn retain(
    request: &PlacementRequest,
    field: &Field<'_>,
    mut unplaced: u32,
    placed: &mut BTreeMap<String, Placed>,
) -> u32 {
    let mut staying = 0;
    let mut holders: Vec<&(&Candidate, Standing)> = field.iter().collect();
    holders.sort_by_key(|(candidate, _)| (!is_location(request, candidate.name()), candidate.name()));
    for (candidate, standing) in holders {
        let has = placed.get(candidate.name()).map_or(0, |placed| placed.replicas);
        let may_stay = match standing {
            Standing::Evict(_) => candidate.running.max(candidate.keeps()),
            Standing::Feasible { .. } | Standing::NoNewReplicas(_) => candidate.running,
        };
        // A location has what was asked for each, and what was asked for those that it stands in for.
        let locations = u32::try_from(candidate.stands_in_for.len()).unwrap_or(u32::MAX).saturating_add(1);
        let may_stay = match request.mode {
            ReplicasMode::PerLocation if !request.may_overflow() => {
                may_stay.min(request.replicas.saturating_mul(locations))
            }
            _ => may_stay,
        };
        let replicas = unplaced.min(may_stay.saturating_sub(has));
        if replicas == 0 {
            continue;
        }
        unplaced -= replicas;
        staying += replicas;
        let kept = Kept {
            replicas,
            because: because(request, candidate, standing),
            as_they_are: candidate.refused.is_some()
                || has.saturating_add(replicas) > candidate.max_replicas(),
        };
        let place = placed
            .entry(candidate.name().to_owned())
            .or_insert_with(|| Placed::new(PlacementCause::NoAlternative));
        place.replicas += replicas;
        place.cause = PlacementCause::NoAlternative;
        place.kept = Some(kept);
        place.stands_in_for.clone_from(&candidate.stands_in_for);
    }
    staying
}

/// Gives what found no other place back to the clusters that refuse the workload, for as long as they do: it is theirs as
/// soon as they take it.
pub(super) fn insist(
    request: &PlacementRequest,
    field: &Field<'_>,
    mut unplaced: u32,
    placed: &mut BTreeMap<String, Placed>,
) {
    let affine = request.placement.effective_policy() == PlacementPolicy::ClusterAffinity;
    let cause = if affine { PlacementCause::Preferred } else { PlacementCause::Policy };
    let mut refusing: Vec<&Candidate> =
        field.iter().map(|(candidate, _)| *candidate).filter(|candidate| may_insist(candidate)).collect();
    refusing.retain(|candidate| !affine || is_location(request, candidate.name()));
    refusing.sort_by_key(|candidate| (std::cmp::Reverse(candidate.reserved), candidate.name()));
    for candidate in refusing {
        let chosen = placed.len() >= request.placement.effective_locations();
        let has = placed.get(candidate.name()).map_or(0, |placed| placed.replicas);
        if has == 0 && !affine && chosen {
            continue;
        }
        let most = match request.mode {
            ReplicasMode::PerLocation => request.replicas.min(candidate.max_replicas()),
            ReplicasMode::Total => candidate.max_replicas(),
        };
        let replicas = unplaced.min(most.saturating_sub(has));
        if replicas > 0 {
            unplaced -= replicas;
            let place = placed.entry(candidate.name().to_owned()).or_insert_with(|| Placed::new(cause));
            place.replicas += replicas;
        }
    }
}

/// Whether nothing but its refusal keeps replicas away from a cluster.
fn may_insist(candidate: &Candidate) -> bool {
    candidate.refused.is_some() && candidate.closed.is_none() && !candidate.silent
}

fn because(request: &PlacementRequest, candidate: &Candidate, standing: &Standing) -> KeptBecause {
    let affine = request.placement.effective_policy() == PlacementPolicy::ClusterAffinity;
    match standing {
        Standing::Evict(_) if request.selects(&candidate.site.labels) => KeptBecause::Evicted,
        Standing::Evict(_) => KeptBecause::NotWanted,
        _ if affine && !is_location(request, candidate.name()) => KeptBecause::NotWanted,
        _ if candidate.refused.is_some() => KeptBecause::Refused,
        _ => KeptBecause::NoRoom,
    }
}

fn is_location(request: &PlacementRequest, name: &str) -> bool {
    request.placement.locations.iter().any(|location| location == name)
}
