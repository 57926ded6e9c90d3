//! A packing that is made in one go: machine by machine, each the one that holds most for its price.

use super::problem::{Packing, Problem, Weight, plus};
use std::cmp::Ordering;

/// The best of the packings with all kinds of machine and with each kind alone.
///
/// Machines that are filled alike are added at once, so that the work grows with the number of shapes and kinds, not of
/// pods.
pub(super) fn pack(problem: &Problem) -> Packing {
    let all: Vec<usize> = (0..problem.kinds.len()).collect();
    let alone = all.iter().map(|kind| vec![*kind]);
    let mut best = with(problem, &all);
    for kinds in alone.collect::<Vec<_>>() {
        let packing = with(problem, &kinds);
        if packing.is_better_than(&best) {
            best = packing;
        }
    }
    best
}

fn with(problem: &Problem, kinds: &[usize]) -> Packing {
    let mut packing = Packing {
        machines: vec![0; problem.kinds.len()],
        weight: Weight::default(),
        placed: 0,
        left: problem.groups.iter().map(|group| group.count).collect(),
    };
    while let Some((kind, pattern, times)) = next(problem, kinds, &packing) {
        packing.machines[kind] += times;
        packing.weight = plus(&packing.weight, &problem.kinds[kind].weight, times);
        for (left, pods) in packing.left.iter_mut().zip(pattern) {
            *left -= pods * times;
            packing.placed = packing.placed.saturating_add(pods * times);
        }
    }
    packing
}

/// The kind of machine that holds most for its price, how it is filled, and how often.
fn next(problem: &Problem, kinds: &[usize], packing: &Packing) -> Option<(usize, Vec<u32>, u32)> {
    let (nodes, weight) = (packing.nodes(), &packing.weight);
    let mut best: Option<(usize, Vec<u32>, i128)> = None;
    for kind in kinds.iter().copied().filter(|kind| problem.affordable(*kind, nodes, weight) > 0) {
        let pattern = fill(problem, kind, &packing.left);
        let value: i128 =
            pattern.iter().zip(&problem.groups).map(|(pods, group)| i128::from(*pods) * group.size).sum();
        let better = |(other, _, worth): &(usize, Vec<u32>, i128)| {
            let (mine, theirs) = (&problem.kinds[kind].weight, &problem.kinds[*other].weight);
            let per_value = (0..4).map(|part| (mine[part] * worth).cmp(&(theirs[part] * value)));
            per_value.fold(Ordering::Equal, Ordering::then) == Ordering::Less
        };
        if value > 0 && best.as_ref().is_none_or(better) {
            best = Some((kind, pattern, value));
        }
    }
    let (kind, pattern, _) = best?;
    let often =
        pattern.iter().zip(&packing.left).filter(|(pods, _)| **pods > 0).map(|(pods, left)| left / pods);
    let times = often.min().unwrap_or(0).min(problem.affordable(kind, nodes, weight));
    (times > 0).then_some((kind, pattern, times))
}

/// How many pods of each group go on one machine if the largest go first.
fn fill(problem: &Problem, kind: usize, left: &[u32]) -> Vec<u32> {
    let mut free = problem.kinds[kind].capacity.clone();
    let group = |(group, left): (usize, &u32)| {
        let pods = problem.fits(kind, group, &free).min(*left);
        problem.occupy(group, pods, &mut free);
        pods
    };
    left.iter().enumerate().map(group).collect()
}
