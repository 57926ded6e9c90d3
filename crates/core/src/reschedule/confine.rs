//! What the placement may do with replicas that stand in: leave them, or what a move allows.

use super::{Move, stands_in};
use crate::placement::{Candidate, PlacementRequest, Standing};
use portolan_api::multiclusterrescheduler::MovePhase;
use portolan_api::placement::{PlacementCause, PlacementPolicy, PlacementStatus, ReplicasMode};

/// Limits what each cluster can take, so that the decision leaves replicas that stand in where they are. With a move, its
/// homes can take as many as it says; with one that is given back, all is as before.
///
/// What has no place yet, or has to leave its cluster, still goes wherever there is room. If nothing stands in, nothing
/// is limited.
pub fn confine(
    request: &PlacementRequest,
    candidates: &mut [Candidate],
    placements: &[PlacementStatus],
    moving: Option<&Move>,
) {
    let moving = moving.filter(|moving| moving.is_under_way());
    let affine = request.placement.effective_policy() == PlacementPolicy::ClusterAffinity;
    let placed = |name: &str| placements.iter().find(|placed| placed.cluster == name);
    let stand_in = |candidate: &Candidate| {
        placed(candidate.name()).is_some_and(|placed| stands_in(request, placed, candidate.site.cloud))
    };
    if moving.is_none() && !candidates.iter().any(stand_in) {
        return;
    }
    // What is anchored needs no other place.
    let anchored = |candidate: &Candidate| {
        let leaves = candidate.lost || matches!(candidate.stands(request, candidates), Standing::Evict(_));
        let at_home = if affine {
            request.placement.locations.iter().any(|location| location == candidate.name())
        } else {
            placed(candidate.name()).is_some_and(|placed| placed.cause != Some(PlacementCause::NoAlternative))
        };
        !leaves && (at_home || stand_in(candidate))
    };
    // Replicas whose node is gone need another place as well, if there is no room for them where they are. Of a silent cluster
    // nothing is known.
    let holds = |candidate: &Candidate| match candidate.silent {
        true => candidate.reserved,
        false => candidate.reserved.min(candidate.bound.saturating_add(candidate.room.max_replicas)),
    };
    let kept: u32 = candidates.iter().filter(|each| anchored(each)).map(holds).sum();
    let asked = match request.mode {
        ReplicasMode::PerLocation => {
            let locations = u32::try_from(request.placement.effective_locations()).unwrap_or(u32::MAX);
            request.replicas.saturating_mul(locations)
        }
        ReplicasMode::Total => request.replicas,
    };
    let returning = moving.filter(|moving| moving.phase == MovePhase::Returning);
    let kept = returning.map_or(kept, |moving| moving.before.values().sum());
    let lacking = asked.saturating_sub(kept);
    let coming_home = moving.is_some_and(|moving| moving.phase != MovePhase::Returning);
    for candidate in candidates.iter_mut().filter(|candidate| !candidate.silent) {
        let most = match moving {
            None => candidate.reserved,
            Some(moving) if moving.phase == MovePhase::Returning => {
                moving.before.get(candidate.name()).copied().unwrap_or(0)
            }
            Some(moving) => {
                moving.targets.get(candidate.name()).copied().unwrap_or(0).max(candidate.reserved)
            }
        };
        let most = most.saturating_add(lacking);
        candidate.bound = candidate.bound.min(most);
        candidate.room.max_replicas = candidate.room.max_replicas.min(most - candidate.bound);
        // A policy begins with the clusters that hold replicas: those of the cloud come last in a move.
        if coming_home && !affine && candidate.site.cloud {
            candidate.reserved = 0;
        }
    }
}

#[cfg(test)]
#[path = "confine_tests.rs"]
mod tests;
