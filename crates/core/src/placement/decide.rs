//! The decision itself.

use super::field::Field;
use super::overflow::{Lacking, overflow};
use super::prioritise::{lacks_traffic, prioritise};
use super::refusals::refusals;
use super::retain::{insist, retain};
use super::{Candidate, Decision, Placed, PlacementRequest, Undecided, divide};
use crate::capacity::Shortage;
use portolan_api::placement::{PlacementCause, PlacementPolicy, ReplicasMode};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Decides where the replicas go, over all candidates.
///
/// For replicas that stay pending, `shortage` is asked why a cluster has no room when so many more of the workload have
/// found their place there.
///
/// # Errors
/// The policy cannot be followed; what is placed stays as it is.
pub fn decide(
    request: &PlacementRequest,
    candidates: &[Candidate],
    mut shortage: impl FnMut(&str, u32) -> Shortage,
) -> Result<Decision, Undecided> {
    let field = Field::of(request, candidates);
    let mut fallback = None;
    let (chosen, cause) = match request.placement.effective_policy() {
        PlacementPolicy::ClusterAffinity => (request.placement.locations.clone(), PlacementCause::Preferred),
        policy => {
            let mut chosen = prioritise(policy, request, &field);
            fallback = lacks_traffic(policy, &field);
            // Who holds most keeps most: were it the freest, each decision would make another one the freest.
            chosen
                .sort_by_key(|name| Reverse(field.get(name).map_or(0, |(candidate, _)| candidate.reserved)));
            (chosen, PlacementCause::Policy)
        }
    };
    let caps: Vec<u32> = chosen.iter().map(|name| field.cap(name)).collect();
    let locations = u32::try_from(request.placement.effective_locations()).unwrap_or(u32::MAX);
    let (total, parts): (u32, Vec<u32>) = match request.mode {
        ReplicasMode::PerLocation => {
            let parts = caps.iter().map(|cap| request.replicas.min(*cap)).collect();
            (request.replicas.saturating_mul(locations), parts)
        }
        ReplicasMode::Total => {
            let weight = |name: &String| request.weights.get(name).copied().unwrap_or(1);
            let shares: Vec<_> = chosen.iter().map(weight).zip(caps).collect();
            (request.replicas, divide(request.replicas, &shares))
        }
    };
    let mut placed: BTreeMap<String, Placed> = chosen
        .iter()
        .zip(&parts)
        .filter(|(_, replicas)| **replicas > 0)
        .map(|(name, replicas)| (name.clone(), Placed { replicas: *replicas, ..Placed::new(cause) }))
        .collect();
    if request.may_overflow() || field.iter().any(|(candidate, _)| candidate.lost) {
        let lacking = lacking(request, &field, &chosen, &parts, total);
        overflow(request, &field, lacking, &mut placed);
    }
    let unplaced = |placed: &BTreeMap<String, Placed>| {
        total - placed.values().map(|placed| placed.replicas).sum::<u32>()
    };
    let to_cloud = unplaced(&placed) > 0 && request.may_overflow();
    let staying = retain(request, &field, unplaced(&placed), &mut placed);
    insist(request, &field, unplaced(&placed), &mut placed);
    let pending = unplaced(&placed);
    let refusals = match pending + staying {
        0 => BTreeMap::new(),
        _ => refusals(request, &field, &placed, &mut shortage),
    };
    Ok(Decision { placed, pending, staying, refusals, to_cloud, fallback })
}

/// What each chosen cluster could not take.
fn lacking(
    request: &PlacementRequest,
    field: &Field<'_>,
    chosen: &[String],
    parts: &[u32],
    total: u32,
) -> Vec<Lacking> {
    let lost = |name: &str| field.get(name).is_some_and(|(candidate, _)| candidate.lost);
    let any_lost = match request.placement.effective_policy() {
        PlacementPolicy::ClusterAffinity => chosen.iter().any(|name| lost(name)),
        _ => field.iter().any(|(candidate, _)| candidate.lost),
    };
    match request.mode {
        ReplicasMode::PerLocation => chosen
            .iter()
            .zip(parts)
            .map(|(name, part)| Lacking {
                at: Some(name.clone()),
                replicas: request.replicas - part,
                lost: lost(name),
            })
            .chain(std::iter::once(Lacking {
                // Locations that no cluster could be found for at all.
                at: chosen.first().cloned(),
                replicas: total
                    - request.replicas.saturating_mul(u32::try_from(chosen.len()).unwrap_or(u32::MAX)),
                lost: any_lost,
            }))
            .collect(),
        ReplicasMode::Total => {
            let replicas = total - parts.iter().sum::<u32>();
            vec![Lacking { at: chosen.first().cloned(), replicas, lost: any_lost }]
        }
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
