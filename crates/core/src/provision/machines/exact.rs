//! The best packing, by branch and bound.
//!
//! The largest pod that is left either gets a new machine, together with as many others as fit beside it, or no machine
//! at all. A machine that has room for one more pod is never better than one that holds it, so only full machines are
//! tried. What cannot become better than the best packing so far is not followed, nor what another way has reached for
//! no more.

use super::EXACT_WORK;
use super::problem::{Packing, Problem, Weight, plus};
use std::collections::BTreeMap;

/// Looks for a better packing than the first one; answers whether all were considered.
pub(super) fn search(problem: &Problem, first: Packing) -> (Packing, bool) {
    let left: Vec<u32> = problem.groups.iter().map(|group| group.count).collect();
    let machines = vec![0; problem.kinds.len()];
    let mut search = Search { problem, best: first, reached: BTreeMap::new(), work: EXACT_WORK };
    let dropped = vec![0; left.len()];
    search.follow(&State { left, dropped, machines, weight: Weight::default() });
    (search.best, search.work > 0)
}

#[derive(Clone)]
struct State {
    /// How many pods of each group are still to be decided.
    left: Vec<u32>,
    /// How many get no machine.
    dropped: Vec<u32>,
    machines: Vec<u32>,
    weight: Weight,
}

struct Search<'a> {
    problem: &'a Problem,
    best: Packing,
    /// For what was left to decide: how many pods had been dropped, and the nodes and weight of the others.
    reached: BTreeMap<Vec<u32>, Vec<(u32, u32, Weight)>>,
    work: u32,
}

impl Search<'_> {
    fn follow(&mut self, state: &State) {
        if self.work == 0 {
            return;
        }
        self.work -= 1;
        let nodes: u32 = state.machines.iter().sum();
        let dropped: u32 = state.dropped.iter().sum();
        let open: u32 = state.left.iter().sum();
        let placed = self.problem.pods() - dropped - open;
        let Some(first) = state.left.iter().position(|pods| *pods > 0) else {
            let State { machines, weight, dropped, .. } = state.clone();
            let packing = Packing { machines, weight, placed, left: dropped };
            if packing.is_better_than(&self.best) {
                self.best = packing;
            }
            return;
        };
        if !self.is_promising(state, placed, open, nodes) || self.was_reached(state, dropped, nodes) {
            return;
        }
        for kind in 0..self.problem.kinds.len() {
            if self.problem.affordable(kind, nodes, &state.weight) == 0 {
                continue;
            }
            for pattern in self.patterns(kind, first, &state.left) {
                let mut next = state.clone();
                for (left, pods) in next.left.iter_mut().zip(pattern) {
                    *left -= pods;
                }
                next.machines[kind] += 1;
                next.weight = plus(&next.weight, &self.problem.kinds[kind].weight, 1);
                self.follow(&next);
            }
        }
        let mut without = state.clone();
        without.dropped[first] += std::mem::take(&mut without.left[first]);
        self.follow(&without);
    }

    /// Whether it could still become better than the best packing so far.
    fn is_promising(&self, state: &State, placed: u32, open: u32, nodes: u32) -> bool {
        let most = placed + self.most_pods(state, nodes).min(open);
        if most != self.best.placed {
            return most > self.best.placed;
        }
        let least = if most == placed + open { self.least_weight(&state.left) } else { Weight::default() };
        plus(&state.weight, &least, 1) < self.best.weight
    }

    /// Whether another way led to the same for no more.
    fn was_reached(&mut self, state: &State, dropped: u32, nodes: u32) -> bool {
        let reached = self.reached.entry(state.left.clone()).or_default();
        if reached.iter().any(|each| each.0 <= dropped && each.1 <= nodes && each.2 <= state.weight) {
            return true;
        }
        reached.push((dropped, nodes, state.weight));
        false
    }

    /// No more pods than these fit on what may still be added, resource by resource.
    fn most_pods(&self, state: &State, nodes: u32) -> u32 {
        let problem = self.problem;
        let nodes = i128::from(problem.limits.nodes.saturating_sub(nodes));
        let budget = problem.limits.cost.map(|limit| (i128::from(limit) - state.weight[0]).max(0));
        let of = |resource: usize| {
            let capacity = |kind: &super::problem::Kind| {
                let (each, price) = (i128::from(kind.capacity[resource]), kind.weight[0]);
                match budget {
                    Some(budget) if price > 0 => (nodes * each).min(budget * each / price),
                    _ => nodes * each,
                }
            };
            let mut free = problem.kinds.iter().map(capacity).max().unwrap_or(0);
            let mut needs: Vec<(i64, u32)> = problem
                .groups
                .iter()
                .map(|group| group.need[resource])
                .zip(state.left.iter().copied())
                .collect();
            needs.sort_unstable();
            let mut pods = 0u32;
            for (need, count) in needs {
                let fits = if need > 0 { free / i128::from(need) } else { i128::from(count) };
                let taken = count.min(u32::try_from(fits).unwrap_or(u32::MAX));
                free -= i128::from(need) * i128::from(taken);
                pods += taken;
            }
            pods
        };
        let resources = problem.groups.first().map_or(0, |group| group.need.len());
        (0..resources).map(of).min().unwrap_or(u32::MAX)
    }

    /// No set of machines that holds all these pods weighs less, part by part.
    fn least_weight(&self, left: &[u32]) -> Weight {
        let problem = self.problem;
        let resources = problem.groups.first().map_or(0, |group| group.need.len());
        let needed = |resource: usize| -> i128 {
            let need = problem.groups.iter().zip(left);
            need.map(|(group, pods)| i128::from(group.need[resource]) * i128::from(*pods)).sum()
        };
        std::array::from_fn(|part| {
            let of = |resource: usize| {
                let need = needed(resource);
                let kinds = problem.kinds.iter().filter(|kind| kind.capacity[resource] > 0);
                let each = |kind: &super::problem::Kind| {
                    let capacity = i128::from(kind.capacity[resource]);
                    (need * kind.weight[part] + capacity - 1) / capacity
                };
                kinds.map(each).min().unwrap_or(0)
            };
            (0..resources).map(of).max().unwrap_or(0)
        })
    }

    /// The ways to fill a machine of the kind that hold at least one pod of the first group and no room for another pod.
    fn patterns(&mut self, kind: usize, first: usize, left: &[u32]) -> Vec<Vec<u32>> {
        let free = self.problem.kinds[kind].capacity.clone();
        let mut filling = Filling { kind, first, left, pattern: vec![0; left.len()], found: Vec::new() };
        self.extend(&mut filling, first, free);
        filling.found
    }

    /// Puts pods of this group and of those behind it on the machine, as many as fit and fewer.
    fn extend(&mut self, filling: &mut Filling<'_>, group: usize, free: Vec<i64>) {
        if self.work == 0 {
            return;
        }
        let (kind, left) = (filling.kind, filling.left);
        if group == left.len() {
            self.work -= 1;
            let pattern = &filling.pattern;
            let more =
                |group: usize| left[group] > pattern[group] && self.problem.fits(kind, group, &free) > 0;
            if !(0..left.len()).any(more) {
                filling.found.push(pattern.clone());
            }
            return;
        }
        let most = self.problem.fits(kind, group, &free).min(left[group]);
        let least = u32::from(group == filling.first);
        for pods in (least..=most).rev() {
            let mut free = free.clone();
            self.problem.occupy(group, pods, &mut free);
            filling.pattern[group] = pods;
            self.extend(filling, group + 1, free);
        }
        filling.pattern[group] = 0;
    }
}

/// A machine that is being filled.
struct Filling<'a> {
    kind: usize,
    /// The group of which at least one pod must be on it.
    first: usize,
    /// How many pods of each group there are.
    left: &'a [u32],
    pattern: Vec<u32>,
    found: Vec<Vec<u32>>,
}
