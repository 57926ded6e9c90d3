//! What every cluster says to replicas that are pending.

use super::field::Field;
use super::{Placed, PlacementRequest, Refusal, Standing};
use crate::capacity::Shortage;
use portolan_api::Reason;
use portolan_api::placement::ReplicasMode;
use std::collections::BTreeMap;

/// Why each cluster took none of the pending replicas, or no more of them.
pub(super) fn refusals(
    request: &PlacementRequest,
    field: &Field<'_>,
    placed: &BTreeMap<String, Placed>,
    shortage: &mut dyn FnMut(&str, u32) -> Shortage,
) -> BTreeMap<String, Refusal> {
    let mut refusals = BTreeMap::new();
    let named = &request.placement.locations;
    for (candidate, standing) in field.iter() {
        let name = candidate.name();
        let location = named.iter().any(|location| location == name);
        if !named.is_empty() && !location && !request.may_overflow() {
            continue;
        }
        let holds = placed.get(name).map_or(0, |placed| placed.replicas - placed.staying());
        let satisfied = request.mode == ReplicasMode::PerLocation && holds == request.replicas;
        if satisfied && !request.may_overflow() {
            continue;
        }
        let refusal = match standing {
            Standing::NoNewReplicas(refusal) | Standing::Evict(refusal) => refusal.clone(),
            Standing::Feasible { max_replicas, .. } if *max_replicas <= holds => {
                let shortage = shortage(name, holds.saturating_sub(candidate.bound));
                let message = match holds {
                    0 => shortage.to_string(),
                    _ => format!("{holds} replicas are placed there; {shortage}"),
                };
                Refusal { reason: Reason::NoRoom, message }
            }
            Standing::Feasible { max_replicas, .. } => Refusal {
                reason: Reason::NotChosen,
                message: format!(
                    "it has room for {max_replicas} replicas but is not among the {} locations asked for",
                    request.placement.effective_locations()
                ),
            },
        };
        refusals.insert(name.to_owned(), refusal);
    }
    for name in named.iter().filter(|name| field.get(name).is_none()) {
        let message = "no ForeignCluster has this name: peer it, or correct spec.locations".to_owned();
        refusals.insert(name.clone(), Refusal { reason: Reason::ClusterNotFound, message });
    }
    refusals
}
