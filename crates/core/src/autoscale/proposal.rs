//! How many replicas one metric proposes for one cluster.

use super::pods::{Groups, Load};
use super::ratio::{Ratio, Tolerances};
use std::cmp::Ordering;

/// The proposal by the numbers of the pods.
///
/// Pods without a number keep replicas from changing too much: where replicas would become fewer such a pod counts as
/// being on target or more, where they would become more it has no load. If that turns the direction, nothing changes.
///
/// # Errors
/// A sentence: no number tells of the load.
pub(super) fn by_pods(current: u32, groups: &Groups, tolerances: Tolerances) -> Result<u32, String> {
    let Groups { ready, unready, missing, .. } = *groups;
    if ready.pods + unready.pods + missing.pods == 0 {
        return Err("no pods were found".to_owned());
    }
    if ready.pods == 0 {
        return Err("did not receive metrics for targeted pods (pods might be unready)".to_owned());
    }
    let known = ratio(ready)?;
    let all = match known.direction() {
        Ordering::Less => ready.plus(missing),
        Ordering::Equal => ready,
        Ordering::Greater => ready.plus(missing.idle()).plus(unready),
    };
    let assumed = ratio(all)?;
    if tolerances.contain(assumed) || known.direction() != assumed.direction() {
        return Ok(current);
    }
    Ok(in_direction(assumed, assumed.of(all.pods), current))
}

/// The proposal by a value that is to be in proportion to the replicas.
pub(super) fn by_value(
    current: u32,
    ready_pods: u32,
    value: u64,
    target: u64,
    tolerances: Tolerances,
) -> u32 {
    let Some(ratio) = Ratio::new(u128::from(value), u128::from(target)) else { return current };
    if current == 0 {
        return ratio.of(1);
    }
    if ready_pods == 0 || tolerances.contain(ratio) {
        return current;
    }
    in_direction(ratio, ratio.of(ready_pods), current)
}

/// The proposal by a value of which each replica is to have so much.
pub(super) fn by_average(current: u32, value: u64, target: u64, tolerances: Tolerances) -> u32 {
    let (value, target) = (u128::from(value), u128::from(target));
    let near = Ratio::new(value, target.saturating_mul(u128::from(current)));
    if near.is_some_and(|ratio| tolerances.contain(ratio)) {
        return current;
    }
    Ratio::new(value, target).map_or(current, |ratio| ratio.of(1))
}

fn ratio(load: Load) -> Result<Ratio, String> {
    Ratio::new(load.usage, load.target).ok_or_else(|| "the requests of the pods are 0".to_owned())
}

/// A load above the target never makes replicas fewer, and one below it never more, however many pods there are.
fn in_direction(ratio: Ratio, proposed: u32, current: u32) -> u32 {
    match ratio.direction() {
        Ordering::Less => proposed.min(current),
        Ordering::Equal => current,
        Ordering::Greater => proposed.max(current),
    }
}

#[cfg(test)]
#[path = "proposal_tests.rs"]
mod tests;
