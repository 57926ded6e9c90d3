//! The cheapest set of machines that holds the pods.
//!
//! Pods are packed on whole nodes: what is free on two nodes does not help a pod that fits on neither. A greedy packing
//! gives a first answer; up to [`EXACT_PODS`] pods, branch and bound looks for a better one, for at most [`EXACT_WORK`]
//! steps. If it ends before that, the answer is the best there is.

mod exact;
mod greedy;
mod problem;

use super::{Demand, MachineType};
use crate::capacity::{Amounts, Shape};
use k8s_openapi::jiff::Timestamp;
use problem::Problem;
use std::collections::BTreeMap;
use std::fmt;

/// Beyond so many pods only the greedy packing is made.
pub const EXACT_PODS: u32 = 200;

/// So many nodes of the search tree are looked at, and so many ways to fill a machine, at most.
pub const EXACT_WORK: u32 = 20_000;

/// What may be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many nodes.
    pub nodes: u32,
    /// What they may cost per hour together, in millionths; nothing if there is no limit.
    pub cost: Option<u64>,
}

/// The machines that hold the pods.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machines {
    /// How many machines of each type.
    pub count: BTreeMap<String, u32>,
    /// What they cost per hour, in millionths.
    pub cost: u64,
    /// How many pods they hold.
    pub holds: u32,
    /// The pods that get no machine, and why.
    pub left: Vec<Left>,
    /// Whether no set of machines holds more pods, or as many for less.
    pub exact: bool,
}

/// Pods that get no machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Left {
    /// What one of them needs.
    pub shape: Shape,
    /// How many.
    pub pods: u32,
    /// Why.
    pub because: LeftBecause,
}

/// Why pods get no machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftBecause {
    /// No machine type holds such a pod.
    NoMachineType {
        /// What it needs, and the most that a machine type has, of the resources that no type has enough of.
        lacking: Vec<(String, i64, i64)>,
    },
    /// As many nodes are there as there may be.
    NodeLimit,
    /// A further node would cost too much.
    CostLimit,
    /// A node that should hold such a pod is there and does not.
    NodesDidNotHelp {
        /// Before this time no further node is tried.
        until: Timestamp,
    },
}

impl LeftBecause {
    /// The reason in a word.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoMachineType { .. } => "NoMachineType",
            Self::NodeLimit => "NodeLimitReached",
            Self::CostLimit => "CostLimitReached",
            Self::NodesDidNotHelp { .. } => "NodesDidNotHelp",
        }
    }
}

impl fmt::Display for LeftBecause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMachineType { lacking } if lacking.is_empty() => f.write_str(
                "no machine type matches its node selector, its node affinity or all its requests at once",
            ),
            Self::NoMachineType { lacking } => {
                let parts = lacking.iter().map(|(name, need, most)| {
                    let written = |milli| Amounts::of(name, milli).to_string();
                    format!(
                        "a pod needs {} and the largest machine type has {}",
                        written(*need),
                        written(*most)
                    )
                });
                f.write_str(&parts.collect::<Vec<_>>().join("; "))
            }
            Self::NodeLimit => f.write_str("spec.maxNodes is reached"),
            Self::CostLimit => f.write_str("a further node would cost more than spec.maxCostPerHour allows"),
            Self::NodesDidNotHelp { until } => write!(
                f,
                "a node is ready that should hold such a pod by spec.machineTypes, and the pod waits all the same: compare \
                 the allocatable resources, taints and labels of the nodes with what is declared; no further node is \
                 requested for it before {until}"
            ),
        }
    }
}

/// Chooses the machines that hold the most of the demand, and of such sets the cheapest; of equally cheap ones the
/// smallest, by CPU, then memory, then number of nodes.
#[must_use]
pub fn choose(types: &[MachineType], demand: &Demand, limits: Limits) -> Machines {
    let problem = Problem::of(types, demand, limits);
    let first = greedy::pack(&problem);
    let (best, exact) = if problem.pods() <= EXACT_PODS {
        exact::search(&problem, first)
    } else {
        (first, problem.pods() == 0)
    };
    let count: BTreeMap<String, u32> = types
        .iter()
        .zip(&best.machines)
        .filter(|(_, n)| **n > 0)
        .map(|(each, n)| (each.name.clone(), *n))
        .collect();
    let left = problem.left(types, &best);
    Machines { cost: best.cost(), holds: best.placed, count, left, exact }
}

#[cfg(test)]
mod tests;
