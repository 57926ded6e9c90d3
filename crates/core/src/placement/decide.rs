//! The decision itself.

use super::overflow::{Lacking, overflow};
use super::prioritise::{lacks_traffic, prioritise};
use super::refusals::refusals;
use super::retain::{Kept, insist, retain};
use super::{Candidate, Refusal, Standing, divide};
use crate::capacity::{Shape, Shortage};
use portolan_api::placement::{Placement, PlacementCause, PlacementPolicy, ReplicasMode};
use portolan_api::selector;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a workload asks for.
#[derive(Clone, Debug)]
pub struct PlacementRequest {
    /// What one replica needs.
    pub shape: Shape,
    /// How many replicas: in each location or in all, as the mode says.
    pub replicas: u32,
    /// How the number is meant.
    pub mode: ReplicasMode,
    /// The shares of clusters when a total is divided; those not named have 1.
    pub weights: BTreeMap<String, u32>,
    /// How clusters are chosen.
    pub placement: Placement,
    /// Whether what does not fit in the chosen clusters goes to further ones.
    pub bursting: bool,
}

/// The replicas of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// How many.
    pub replicas: u32,
    /// Why this cluster.
    pub cause: PlacementCause,
    /// The locations that it stands in for.
    pub stands_in_for: Vec<String>,
    /// Those among them that only stay, since they find no place as the present spec asks for them.
    pub kept: Option<Kept>,
}

impl Placed {
    /// No replicas yet, for this reason.
    #[must_use]
    pub fn new(cause: PlacementCause) -> Self {
        Self { replicas: 0, cause, stands_in_for: Vec::new(), kept: None }
    }

    /// How many of its replicas only stay.
    #[must_use]
    pub fn staying(&self) -> u32 {
        self.kept.map_or(0, |kept| kept.replicas)
    }
}

/// What was decided. Placed and pending replicas together are the replicas of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The clusters that hold replicas.
    pub placed: BTreeMap<String, Placed>,
    /// How many replicas have no cluster.
    pub pending: u32,
    /// How many of the placed replicas only stay where they run, since they find no place as the present spec asks for them.
    pub staying: u32,
    /// For replicas that are pending or only stay: why each cluster took none, or no more.
    pub refusals: BTreeMap<String, Refusal>,
    /// Whether a further cluster in the cloud would help: replicas that may leave their locations fit nowhere.
    pub to_cloud: bool,
    /// What the policy lacks, if clusters were put in order by another one.
    pub fallback: Option<&'static str>,
}

/// Why nothing could be decided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecided {
    /// The policy needs something that is not there.
    #[error("placement policy {policy} is not available: {missing}")]
    PolicyUnavailable {
        /// The policy asked for.
        policy: PlacementPolicy,
        /// What is missing.
        missing: &'static str,
    },
}

impl PlacementRequest {
    /// Whether the cluster selector, if there is one, matches the labels.
    #[must_use]
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let selector = self.placement.cluster_selector.as_ref();
        selector.is_none_or(|selector| selector::matches(selector, labels))
    }

    /// Whether replicas may go to other clusters than the chosen ones.
    pub(super) fn may_overflow(&self) -> bool {
        self.bursting || self.placement.enable_substitution
    }
}

/// All candidates in order of name, with their standing before one workload.
pub(super) struct Field<'a>(Vec<(&'a Candidate, Standing)>);

impl<'a> Field<'a> {
    pub(super) fn of(request: &PlacementRequest, candidates: &'a [Candidate]) -> Self {
        let mut all: Vec<_> =
            candidates.iter().map(|each| (each, each.stands(request, candidates))).collect();
        all.sort_by(|(one, _), (other, _)| one.name().cmp(other.name()));
        Self(all)
    }

    /// All of them, in order of name.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(&'a Candidate, Standing)> {
        self.0.iter()
    }

    /// The candidate of this name.
    pub(super) fn get(&self, name: &str) -> Option<&(&'a Candidate, Standing)> {
        let found = self.0.binary_search_by(|(each, _)| each.name().cmp(name));
        found.ok().and_then(|index| self.0.get(index))
    }

    /// How many replicas a cluster may hold: as many as fit, or what it keeps if nothing new may go there.
    pub(super) fn cap(&self, name: &str) -> u32 {
        match self.get(name) {
            Some((_, Standing::Feasible { max_replicas, .. })) => *max_replicas,
            Some((candidate, Standing::NoNewReplicas(_))) => candidate.keeps(),
            Some((_, Standing::Evict(_))) | None => 0,
        }
    }

    /// The round-trip time between two clusters, as far as it is known.
    pub(super) fn rtt(&self, one: &str, other: &str) -> Option<Duration> {
        let ((one, _), (other, _)) = (self.get(one)?, self.get(other)?);
        one.round_trip(other)
    }
}

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
