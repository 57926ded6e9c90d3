//! Replicas that did not fit where they were wanted, and the clusters that stand in.

use super::field::Field;
use super::{Placed, PlacementRequest, Standing};
use portolan_api::placement::{PlacementCause, PlacementPolicy};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

/// Replicas that a location could not take.
pub(super) struct Lacking {
    /// The location; none if no cluster was found for it.
    pub(super) at: Option<String>,
    /// How many.
    pub(super) replicas: u32,
    /// Whether the location was lost, so that they are replaced whatever else the workload allows.
    pub(super) lost: bool,
}

/// Gives what is lacking to the nearest clusters with room, and to clusters in the cloud last.
///
/// Room is counted once: two full locations that share a neighbour share what it has.
pub(super) fn overflow(
    request: &PlacementRequest,
    field: &Field<'_>,
    lacking: Vec<Lacking>,
    placed: &mut BTreeMap<String, Placed>,
) {
    for Lacking { at, mut replicas, lost } in
        lacking.into_iter().filter(|each| each.replicas > 0 && (each.lost || request.may_overflow()))
    {
        for (name, cloud) in nearest(request, field, at.as_deref(), lost) {
            if replicas == 0 {
                break;
            }
            let holds = placed.get(name).map_or(0, |placed| placed.replicas);
            let taken = replicas.min(field.cap(name).saturating_sub(holds));
            if taken == 0 {
                continue;
            }
            replicas -= taken;
            let cause = match (lost, cloud, request.placement.enable_substitution) {
                (true, ..) => PlacementCause::Replacement,
                (false, true, _) => PlacementCause::Cloud,
                (false, false, true) => PlacementCause::Substitution,
                (false, false, false) => PlacementCause::Bursting,
            };
            let stand_in = placed.entry(name.to_owned()).or_insert_with(|| Placed::new(cause));
            stand_in.replicas += taken;
            if let Some(at) = at.as_ref().filter(|at| !stand_in.stands_in_for.contains(at)) {
                stand_in.stands_in_for.push(at.clone());
            }
        }
    }
}

/// The clusters that may stand in for a location: those of the cloud last, those that already hold replicas first, those
/// with a taint that discourages after the others, then by round-trip time; where that is not known, last and by name. For
/// a lost one, the other locations may, at last.
fn nearest<'a>(
    request: &PlacementRequest,
    field: &Field<'a>,
    at: Option<&str>,
    lost: bool,
) -> Vec<(&'a str, bool)> {
    let named = |name: &str| request.placement.locations.iter().any(|location| location == name);
    // A substitute stands in for a preferred cluster; a burst may use whatever room there is.
    let affine = request.placement.effective_policy() == PlacementPolicy::ClusterAffinity;
    let excluded = |name: &str| affine && !request.bursting && !lost && named(name);
    let last = |name: &str| lost && named(name);
    let mut others: Vec<_> = field
        .iter()
        .filter(|(each, standing)| matches!(standing, Standing::Feasible { .. }) && !excluded(each.name()))
        .map(|(candidate, _)| {
            let name = candidate.name();
            let rtt = at.and_then(|at| field.rtt(at, name)).unwrap_or(Duration::MAX);
            let discouraged = candidate.is_discouraged(request);
            let order =
                (candidate.site.cloud, last(name), Reverse(candidate.reserved > 0), discouraged, rtt, name);
            (order, candidate.site.cloud)
        })
        .collect();
    others.sort();
    others.into_iter().map(|((_, _, _, _, _, name), cloud)| (name, cloud)).collect()
}
