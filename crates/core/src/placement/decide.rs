//! The decision itself.

use super::{Candidate, Refusal, Standing, divide};
use crate::capacity::{Amounts, CPU, MEMORY, PodShape};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use portolan_api::placement::{Placement, PlacementCause, PlacementPolicy, ReplicasMode};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What a workload asks for.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// What one replica needs.
    pub shape: PodShape,
    /// How many replicas: in each location or in all, as the mode says.
    pub replicas: u32,
    /// How the number is meant.
    pub mode: ReplicasMode,
    /// The shares of clusters when a total is divided; those not named have 1.
    pub weights: BTreeMap<String, u32>,
    /// How clusters are chosen.
    pub placement: Placement,
}

/// The replicas of one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// How many.
    pub replicas: u32,
    /// Why this cluster.
    pub cause: PlacementCause,
}

/// What was decided. Placed and pending replicas together are what was wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The clusters that hold replicas.
    pub placed: BTreeMap<String, Placed>,
    /// How many replicas have no cluster.
    pub pending: u32,
    /// For pending replicas: why each cluster took none, or no more.
    pub refusals: BTreeMap<String, Refusal>,
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

impl Wanted {
    /// Whether the cluster selector, if there is one, matches the labels.
    #[must_use]
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.placement.cluster_selector.as_ref().is_none_or(|selector| matches(selector, labels))
    }
}

/// Decides where the replicas go, over all candidates.
///
/// # Errors
/// The policy cannot be followed; what is placed stays as it is.
pub fn decide(wanted: &Wanted, candidates: &[Candidate]) -> Result<Decision, Undecided> {
    let standings: BTreeMap<&str, (&Candidate, Standing)> =
        candidates.iter().map(|each| (each.name.as_str(), (each, each.stands(wanted)))).collect();
    let chosen = match wanted.placement.effective_policy() {
        PlacementPolicy::ClusterAffinity => wanted.placement.locations.clone(),
        policy => prioritise(policy, wanted, &standings)?,
    };
    let cause = match wanted.placement.effective_policy() {
        PlacementPolicy::ClusterAffinity => PlacementCause::Preferred,
        _ => PlacementCause::Policy,
    };
    let caps: Vec<u32> = chosen.iter().map(|name| cap(standings.get(name.as_str()))).collect();
    let locations = u32::try_from(wanted.placement.effective_locations()).unwrap_or(u32::MAX);
    let (total, parts) = match wanted.mode {
        ReplicasMode::PerLocation => (
            wanted.replicas.saturating_mul(locations),
            caps.iter().map(|cap| wanted.replicas.min(*cap)).collect(),
        ),
        ReplicasMode::Total => {
            let weight = |name: &String| wanted.weights.get(name).copied().unwrap_or(1);
            let shares: Vec<_> = chosen.iter().map(weight).zip(caps).collect();
            (wanted.replicas, divide(wanted.replicas, &shares))
        }
    };
    let placed: BTreeMap<String, Placed> = chosen
        .into_iter()
        .zip(parts)
        .filter(|(_, replicas)| *replicas > 0)
        .map(|(name, replicas)| (name, Placed { replicas, cause }))
        .collect();
    let pending = total - placed.values().map(|placed| placed.replicas).sum::<u32>();
    let refusals = if pending == 0 { BTreeMap::new() } else { refusals(wanted, &standings, &placed) };
    Ok(Decision { placed, pending, refusals })
}

/// How many replicas a cluster may hold: as many as fit, or what it has if nothing new may go there.
fn cap(standing: Option<&(&Candidate, Standing)>) -> u32 {
    match standing {
        Some((_, Standing::Open { fits, .. })) => *fits,
        Some((candidate, Standing::Closed(_))) => candidate.held,
        None => 0,
    }
}

/// The clusters in the order of the policy, as many as there are locations.
///
/// A cluster that already holds replicas comes first: a decision is not taken anew because room has changed elsewhere.
/// Then come those that can hold all replicas of a location.
fn prioritise(
    policy: PlacementPolicy,
    wanted: &Wanted,
    standings: &BTreeMap<&str, (&Candidate, Standing)>,
) -> Result<Vec<String>, Undecided> {
    let none = Amounts::default();
    let mut ranked: Vec<_> = standings
        .iter()
        .filter_map(|(name, (candidate, standing))| match standing {
            Standing::Open { fits, free } => (*fits > 0).then_some((name, candidate.held > 0, *fits, free)),
            Standing::Closed(_) => (candidate.held > 0).then_some((name, true, candidate.held, &none)),
        })
        .collect();
    let rooms = |free: &Amounts| (free.get(CPU), free.get(MEMORY));
    let preferred = |held: bool, fits: u32| (Reverse(held), Reverse(fits >= wanted.replicas));
    match policy {
        PlacementPolicy::WorstFit => ranked
            .sort_by_key(|(name, held, fits, free)| (preferred(*held, *fits), Reverse(rooms(free)), **name)),
        PlacementPolicy::BestFit => {
            ranked.sort_by_key(|(name, held, fits, free)| (preferred(*held, *fits), rooms(free), **name));
        }
        PlacementPolicy::TrafficAware | PlacementPolicy::ClusterAffinity => {
            let missing = "no traffic is measured yet; use worst-fit, best-fit or locations";
            return Err(Undecided::PolicyUnavailable { policy, missing });
        }
    }
    let locations = wanted.placement.effective_locations();
    Ok(ranked.into_iter().take(locations).map(|(name, ..)| (*name).to_owned()).collect())
}

/// What every cluster says to the replicas that are pending.
fn refusals(
    wanted: &Wanted,
    standings: &BTreeMap<&str, (&Candidate, Standing)>,
    placed: &BTreeMap<String, Placed>,
) -> BTreeMap<String, Refusal> {
    let mut refusals = BTreeMap::new();
    let named = &wanted.placement.locations;
    for (name, (candidate, standing)) in standings {
        if !named.is_empty() && !named.iter().any(|location| location == name) {
            continue;
        }
        let holds = placed.get(*name).map_or(0, |placed| placed.replicas);
        if wanted.mode == ReplicasMode::PerLocation && holds == wanted.replicas {
            continue;
        }
        let refusal = match standing {
            Standing::Closed(refusal) => refusal.clone(),
            Standing::Open { fits, .. } if *fits <= holds => {
                let mut room = candidate.room.clone();
                room.reserve(&wanted.shape, holds.saturating_sub(candidate.settled));
                let shortage = room.shortage(&wanted.shape);
                let message = match holds {
                    0 => shortage.to_string(),
                    _ => format!("{holds} replicas are placed there; {shortage}"),
                };
                Refusal { reason: "NoRoom", message }
            }
            Standing::Open { fits, .. } => Refusal {
                reason: "NotChosen",
                message: format!(
                    "it has room for {fits} replicas but is not among the {} locations asked for",
                    wanted.placement.effective_locations()
                ),
            },
        };
        refusals.insert((*name).to_owned(), refusal);
    }
    for name in named.iter().filter(|name| !standings.contains_key(name.as_str())) {
        let message = "no ForeignCluster has this name: peer it, or correct spec.locations".to_owned();
        refusals.insert(name.clone(), Refusal { reason: "UnknownCluster", message });
    }
    refusals
}

fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let equal = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    equal
        && selector.match_expressions.iter().flatten().all(|wanted| {
            let value = labels.get(&wanted.key);
            let listed = value.is_some_and(|value| wanted.values.iter().flatten().any(|each| each == value));
            match wanted.operator.as_str() {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
