//! Giving pending completions to clusters.

use super::{Part, Plan, Release, Work};
use crate::capacity::Shortage;
use crate::placement::{Candidate, Decision, PlacementRequest, Refusal, Undecided, decide, divide};
use portolan_api::Reason;
use portolan_api::placement::{PlacementCause, PlacementPolicy, ReplicasMode};

/// Gives as many of the pending completions to clusters as find one, and room for at least one pod of them.
pub(super) fn assign(
    work: &Work,
    candidates: &[Candidate],
    plan: &mut Plan,
    shortage: &mut dyn FnMut(&str, u32) -> Shortage,
) -> Result<(), Undecided> {
    let affine = work.request.placement.effective_policy() == PlacementPolicy::ClusterAffinity;
    match work.request.mode {
        ReplicasMode::PerLocation if affine => {
            for location in &work.request.placement.locations {
                let has = plan.record.parts.get(location).map_or(0, |part| part.completions);
                let lacks = work.completions.saturating_sub(has).min(plan.pending);
                if lacks > 0 {
                    let mut request = asking(work, plan, lacks.min(work.parallelism.max(1)));
                    request.placement.locations = vec![location.clone()];
                    let decision = decide(&request, &open(work, candidates, plan), &mut *shortage)?;
                    give(work, plan, decision, lacks);
                }
            }
        }
        ReplicasMode::PerLocation => {
            let each = work.completions.min(plan.pending);
            let mut request = asking(work, plan, each.min(work.parallelism.max(1)));
            let lacking = plan.pending.div_ceil(work.completions.max(1));
            request.placement.number_of_locations = i32::try_from(lacking).ok();
            let mut open = open(work, candidates, plan);
            let holding = plan.record.parts.values().filter(|part| part.completions > 0).count();
            if !moved(plan) && holding < work.request.placement.effective_locations() {
                // Every location is another cluster.
                open.retain(|each| {
                    plan.record.parts.get(each.name()).is_none_or(|part| part.completions == 0)
                });
            }
            let decision = decide(&request, &open, &mut *shortage)?;
            refuse(plan, &decision);
            for (cluster, placed) in decision.placed {
                let completions = work.completions.min(plan.pending);
                add(plan, &cluster, completions, placed.replicas, placed.cause);
            }
        }
        ReplicasMode::Total => {
            let used = plan.record.parts.values().map(Part::in_use).sum();
            let left = work.parallelism.saturating_sub(used);
            let locations = u32::try_from(work.request.placement.effective_locations()).unwrap_or(u32::MAX);
            let pending = plan.pending;
            let request = asking(work, plan, pending.min(left.max(locations)));
            let mut decision = decide(&request, &open(work, candidates, plan), &mut *shortage)?;
            let rooms: Vec<u32> = decision.placed.values().map(|placed| placed.replicas).collect();
            let completions =
                divide(pending, &rooms.iter().map(|room| (*room, u32::MAX)).collect::<Vec<_>>());
            let parallel = divide(left, &rooms.iter().map(|room| (*room, *room)).collect::<Vec<_>>());
            refuse(plan, &decision);
            let placed = std::mem::take(&mut decision.placed).into_iter();
            for ((cluster, placed), (completions, parallel)) in
                placed.zip(completions.into_iter().zip(parallel))
            {
                add(plan, &cluster, completions, parallel, placed.cause);
            }
        }
    }
    Ok(())
}

/// What is asked of the decision. Work that could not be done where it was may go wherever there is room.
fn asking(work: &Work, plan: &Plan, replicas: u32) -> PlacementRequest {
    let mut request = PlacementRequest { replicas, ..work.request.clone() };
    if moved(plan) && request.placement.effective_policy() == PlacementPolicy::ClusterAffinity {
        request.placement.enable_substitution = true;
        request.bursting = true;
    }
    request
}

fn moved(plan: &Plan) -> bool {
    plan.record.retries > 0
        || plan.record.parts.values().any(|part| part.released.is_some_and(Release::is_loss))
}

/// The candidates with the room that they have beside what the job holds already.
fn open(work: &Work, candidates: &[Candidate], plan: &Plan) -> Vec<Candidate> {
    let beside = |candidate: &Candidate| {
        let mut candidate = candidate.clone();
        let part = plan.record.parts.get(candidate.name());
        candidate.room.max_replicas = super::pace::beside(&candidate, part);
        (candidate.bound, candidate.reserved) = (0, 0);
        if part.is_some_and(|part| part.released == Some(Release::Failed)) {
            let message = "the job's Job has failed there".to_owned();
            candidate.closed = Some(Refusal { reason: Reason::JobFailed, message });
        } else if work.indexed && part.is_some_and(|part| part.completions > 0) {
            let message =
                "it has indexes of its own already, and one Job cannot have two sets of them".to_owned();
            candidate.closed = Some(Refusal { reason: Reason::IndexesAssigned, message });
        }
        candidate
    };
    candidates.iter().map(beside).collect()
}

/// Divides the completions of one location over the clusters that were found for it, by the pods that each can run.
fn give(work: &Work, plan: &mut Plan, decision: Decision, lacks: u32) {
    refuse(plan, &decision);
    let rooms: Vec<u32> = decision.placed.values().map(|placed| placed.replicas).collect();
    let shares: Vec<u32> = if work.indexed {
        let largest = rooms.iter().max().copied();
        let chosen = rooms.iter().position(|room| Some(*room) == largest);
        (0..rooms.len()).map(|index| if Some(index) == chosen { lacks } else { 0 }).collect()
    } else {
        divide(lacks, &rooms.iter().map(|room| (*room, u32::MAX)).collect::<Vec<_>>())
    };
    for ((cluster, placed), completions) in decision.placed.into_iter().zip(shares) {
        add(plan, &cluster, completions, placed.replicas, placed.cause);
    }
}

fn add(plan: &mut Plan, cluster: &str, completions: u32, parallelism: u32, cause: PlacementCause) {
    if completions == 0 {
        return;
    }
    let replaces = plan.record.parts.values().any(|part| part.released == Some(Release::Silent));
    plan.pending -= completions;
    let part = plan.record.parts.entry(cluster.to_owned()).or_default();
    part.parallelism = part.in_use() + parallelism.min(completions);
    part.completions += completions;
    part.released = part.released.filter(|release| release.is_loss());
    let cause = if replaces { PlacementCause::Replacement } else { cause };
    part.cause = part.cause.or(Some(cause));
}

fn refuse(plan: &mut Plan, decision: &Decision) {
    plan.refusals.extend(decision.refusals.clone());
    plan.to_cloud |= decision.to_cloud;
}
