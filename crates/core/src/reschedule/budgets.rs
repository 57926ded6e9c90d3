//! PodDisruptionBudgets: how many pods may leave a cluster.

use super::{Budgets, Move, StayReason, WorkloadKey, WorkloadSnapshot};
use portolan_api::multiclusterrescheduler::MovePhase;
use std::collections::BTreeMap;

/// Whether so many replicas may leave a cluster now, as far as a move of the workload is concerned: those that come home
/// go when all of their replacements are ready, and the budgets let them. Budgets that are not known let none go.
#[must_use]
pub fn may_leave(moving: Option<&Move>, cluster: &str, replicas: u32, budgets: Option<&Budgets>) -> bool {
    let moving = moving.filter(|moving| moving.from.iter().any(|from| from == cluster));
    match moving.map(|moving| moving.phase) {
        Some(MovePhase::Surging) => false,
        Some(MovePhase::Draining) => {
            budgets.is_some_and(|budgets| budgets.values().all(|allowed| replicas <= *allowed))
        }
        Some(MovePhase::Returning | MovePhase::Done | MovePhase::Failed) | None => true,
    }
}

/// What moves take of each budget, by cluster, namespace and name: several workloads may be under one.
#[derive(Debug, Default)]
pub(super) struct Taken(BTreeMap<(String, String, String), u32>);

impl Taken {
    /// The pods of a move leave, or are about to. Until it is over, budgets may not yet tell of it.
    pub(super) fn take(&mut self, key: &WorkloadKey, moving: &Move, workload: &WorkloadSnapshot) {
        for cluster in &moving.from {
            for budget in workload.budgets.get(cluster).into_iter().flat_map(Budgets::keys) {
                let taken = self.0.entry(name(key, cluster, budget)).or_default();
                *taken = taken.saturating_add(moving.replicas);
            }
        }
    }

    /// How many pods of a workload the budgets of a cluster still let go, and the one that lets the fewest go.
    ///
    /// # Errors
    /// They are not known.
    pub(super) fn rest(
        &self,
        key: &WorkloadKey,
        cluster: &str,
        workload: &WorkloadSnapshot,
    ) -> Result<Option<(String, u32)>, StayReason> {
        let Some(budgets) = workload.budgets.get(cluster) else {
            return Err(StayReason::BudgetsUnknown { cluster: cluster.to_owned() });
        };
        let rest = |(budget, allowed): (&String, &u32)| {
            let taken = self.0.get(&name(key, cluster, budget)).copied().unwrap_or(0);
            (budget.clone(), allowed.saturating_sub(taken))
        };
        Ok(budgets.iter().map(rest).min_by_key(|(_, rest)| *rest))
    }

    /// Whether the replicas that a move has replaced may leave.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn let_go(
        &self,
        key: &WorkloadKey,
        moving: &Move,
        workload: &WorkloadSnapshot,
    ) -> Result<(), StayReason> {
        for (cluster, leaves) in workload.leaving.iter().filter(|(name, _)| moving.from.contains(name)) {
            match self.rest(key, cluster, workload)? {
                Some((budget, allows)) if allows < *leaves => {
                    let (cluster, leaves) = (cluster.clone(), *leaves);
                    return Err(StayReason::DisruptionBudget { cluster, budget, allows, leaves });
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }
}

fn name(key: &WorkloadKey, cluster: &str, budget: &str) -> (String, String, String) {
    (cluster.to_owned(), key.namespace.clone(), budget.to_owned())
}
