//! The way from what runs to what was decided: what each cluster is to run at this moment.
//!
//! Moves surge first: a cluster that is to hold fewer replicas than it does keeps as many more as are not ready yet
//! elsewhere. So ready replicas never become fewer than what was asked for by a decision, however far it reaches.

use super::{Decision, Placed};
use std::collections::BTreeMap;

/// The copy of a workload in one cluster, as last seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopySnapshot {
    /// How many replicas it is asked to run.
    pub replicas: u32,
    /// How many are ready.
    pub ready: u32,
    /// How many were ready at one time within the last minutes: a dip is not for ever.
    pub lately_ready: u32,
    /// Whether it is being rolled out: pods of a former template are left.
    pub rolling: bool,
    /// Whether it is of the present template, and its numbers tell of that.
    pub current: bool,
    /// Whether none of its replicas may go now, even if others replace them.
    pub stays: bool,
    /// Whether the cluster answers; if not, the numbers are the last ones known.
    pub reachable: bool,
}

/// What is to be done about the copy in one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It is to be as the workload says, with so many replicas.
    Apply {
        /// How many, for now.
        replicas: u32,
    },
    /// It is to be left as it is, whatever the workload says now.
    Keep,
    /// It keeps its template, whatever the workload says now, and runs fewer replicas.
    Scale {
        /// How many, for now.
        replicas: u32,
    },
    /// It is to be deleted.
    Delete,
}

/// What is to be done in each cluster that holds replicas or is to; nothing in those that do not answer.
#[must_use]
pub fn transition(decision: &Decision, copies: &BTreeMap<String, CopySnapshot>) -> BTreeMap<String, Order> {
    let target = |cluster: &str| decision.placed.get(cluster).map_or(0, |placed| placed.replicas);
    let placed: u32 = decision.placed.values().map(|placed| placed.replicas).sum();
    let ready_elsewhere = |cluster: &str| -> u32 {
        let others = decision.placed.iter().filter(|(other, _)| *other != cluster);
        others.map(|(other, placed)| remains(placed, copies.get(other))).sum()
    };
    let order = |cluster: &String| {
        let copy = copies
            .get(cluster)
            .copied()
            .unwrap_or(CopySnapshot { reachable: true, ..CopySnapshot::default() });
        if !copy.reachable {
            return None;
        }
        let former = decision.placed.get(cluster).is_some_and(|placed| keeps_former(placed, &copy));
        let serving = serving(&copy);
        let replicas = match target(cluster) {
            request if copy.replicas <= request => request,
            _ if copy.stays => copy.replicas,
            request => {
                // Replicas that are pending could only be where others of the workload are not wanted any more.
                let asked = if request > 0 { placed } else { placed.saturating_add(decision.pending) };
                let lacking = asked.saturating_sub(ready_elsewhere(cluster).saturating_add(request));
                // When fewer are asked for in the middle of a rollout, Kubernetes takes ready ones too.
                let lacking = if copy.rolling && lacking > 0 { u32::MAX } else { lacking };
                // What is not ready serves nobody, and does not wait for a replacement.
                request.saturating_add(serving.saturating_sub(request).min(lacking)).min(copy.replicas)
            }
        };
        // What is about to go is not updated, and what serves of it goes in one step.
        let goes = !decision.placed.contains_key(cluster);
        let replicas = if goes && replicas > 0 && !copy.stays { serving } else { replicas };
        Some(match replicas {
            0 => Order::Delete,
            replicas if (former || goes) && replicas < copy.replicas => Order::Scale { replicas },
            _ if former || goes => Order::Keep,
            replicas => Order::Apply { replicas },
        })
    };
    let clusters = decision.placed.keys().chain(copies.keys());
    clusters.filter_map(|cluster| Some((cluster.clone(), order(cluster)?))).collect()
}

/// How many replicas of a cluster are ready and will go on.
fn remains(placed: &Placed, copy: Option<&CopySnapshot>) -> u32 {
    let Some(copy) = copy else { return 0 };
    // A copy that is about to be updated may have none ready while it is.
    let goes_on = !copy.reachable || copy.current || keeps_former(placed, copy);
    if goes_on { copy.ready.min(placed.replicas) } else { 0 }
}

/// How many replicas of a copy have to be taken for ready, if none that is may go.
fn serving(copy: &CopySnapshot) -> u32 {
    let ready = copy.ready.max(copy.lately_ready);
    if copy.rolling && ready > 0 { copy.replicas } else { ready.min(copy.replicas) }
}

/// Whether a copy of a former template is left as it is, since the present one has no room there.
fn keeps_former(placed: &Placed, copy: &CopySnapshot) -> bool {
    copy.replicas > 0 && !copy.current && placed.kept.is_some_and(|kept| kept.as_they_are)
}

#[cfg(test)]
#[path = "transition_tests.rs"]
mod tests;
