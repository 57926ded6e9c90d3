//! Dividing a total by the load of the clusters.
//!
//! The parts are weights for placement: they sum up to the total, so that dividing the total by them gives just these
//! parts, and a cluster without room for its part leaves it to the others in proportion.

use crate::placement::divide;
use std::collections::BTreeMap;

/// By how much a part may differ from its share in proportion before replicas move, as a divisor: a tenth.
const BAND: u64 = 10;

/// What the part of one cluster depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// How many replicas it has.
    pub current: u32,
    /// How many it is to have by its load.
    pub desired: u32,
    /// How many its load needs where every small difference counts.
    pub need: u32,
}

/// Divides a total by load.
///
/// - If the total is what the clusters ask for, each gets that.
/// - If it is more, what is left stays where it is, and otherwise goes where the load is.
/// - If it is less and grows, nobody loses what it still needs.
/// - If it is less and does not grow, all lack in proportion to their need. Parts that are near to that stay.
#[must_use]
pub fn divide_by_load(total: u32, shares: &BTreeMap<String, Share>) -> BTreeMap<String, u32> {
    let all: Vec<Share> = shares.values().copied().collect();
    let sum = |each: fn(&Share) -> u32| all.iter().map(each).fold(0, u32::saturating_add);
    let (current, desired) = (sum(|share| share.current), sum(|share| share.desired));
    let parts = if total >= desired {
        with_rest(total - desired, &all)
    } else if total > current {
        growing(total, &all)
    } else {
        in_proportion(total, &all)
    };
    shares.keys().cloned().zip(parts).collect()
}

/// All get what they ask for, and the rest is divided.
fn with_rest(rest: u32, shares: &[Share]) -> Vec<u32> {
    let surplus = |share: &Share| share.current.saturating_sub(share.desired);
    let staying =
        divide(rest, &shares.iter().map(|share| (surplus(share), surplus(share))).collect::<Vec<_>>());
    let left = rest - staying.iter().sum::<u32>();
    let more = divide(left, &shares.iter().map(|share| (share.desired.max(1), u32::MAX)).collect::<Vec<_>>());
    let parts = shares.iter().zip(staying).zip(more);
    parts.map(|((share, staying), more)| share.desired.saturating_add(staying).saturating_add(more)).collect()
}

/// All keep what they have and ask for, and the rest goes to those that ask for more.
fn growing(total: u32, shares: &[Share]) -> Vec<u32> {
    let kept = |share: &Share| share.current.min(share.desired);
    let rest = total.saturating_sub(shares.iter().map(kept).fold(0, u32::saturating_add));
    let lacks = |share: &Share| share.desired - kept(share);
    let more = divide(rest, &shares.iter().map(|share| (lacks(share), lacks(share))).collect::<Vec<_>>());
    shares.iter().zip(more).map(|(share, more)| kept(share) + more).collect()
}

/// All get less than they ask for, in proportion to their need.
fn in_proportion(total: u32, shares: &[Share]) -> Vec<u32> {
    let needs: u64 = shares.iter().map(|share| u64::from(share.need)).sum();
    let current: u64 = shares.iter().map(|share| u64::from(share.current)).sum();
    let near = |share: &Share| {
        // Both times the sum of all needs, so that nothing is rounded.
        let (part, ideal) = (u64::from(share.current) * needs, u64::from(total) * u64::from(share.need));
        part.abs_diff(ideal) <= needs.max(part / BAND)
    };
    if current == u64::from(total) && shares.iter().all(near) {
        return shares.iter().map(|share| share.current).collect();
    }
    divide(total, &shares.iter().map(|share| (share.need, u32::MAX)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(total: u32, shares: &[(u32, u32, u32)]) -> Vec<u32> {
        let shares = shares.iter().enumerate().map(|(index, (current, desired, need))| {
            (format!("c{index}"), Share { current: *current, desired: *desired, need: *need })
        });
        divide_by_load(total, &shares.collect()).into_values().collect()
    }

    #[test]
    fn replicas_go_where_the_load_is() {
        type Case<'a> = (&'a str, u32, &'a [(u32, u32, u32)], &'a [u32]);
        let cases: [Case<'_>; 10] = [
            ("each gets what it asks for", 10, &[(5, 8, 8), (5, 2, 2)], &[8, 2]),
            ("small differences of load are left", 10, &[(5, 5, 6), (5, 5, 5)], &[5, 5]),
            ("what is left stays", 10, &[(5, 3, 3), (5, 5, 5)], &[5, 5]),
            ("what is left follows the load", 12, &[(1, 6, 6), (5, 3, 3)], &[7, 5]),
            ("a larger minimum", 12, &[(2, 2, 2), (4, 4, 4)], &[4, 8]),
            ("growth is limited: nobody loses", 14, &[(5, 20, 20), (5, 5, 5)], &[9, 5]),
            ("growth is limited: a surplus moves", 14, &[(5, 20, 20), (5, 3, 3)], &[11, 3]),
            ("the maximum is reached", 10, &[(5, 20, 20), (5, 5, 5)], &[8, 2]),
            ("near enough", 10, &[(7, 20, 20), (3, 5, 5)], &[7, 3]),
            ("nothing is asked for", 3, &[(1, 0, 0), (2, 0, 0)], &[1, 2]),
        ];
        for (about, total, shares, expected) in cases {
            assert_eq!(parts(total, shares), expected, "{about}");
        }
    }

    fn shares() -> impl Strategy<Value = Vec<(u32, u32, u32)>> {
        let share = (0u32..50, 0u32..50, 0u32..5)
            .prop_map(|(current, desired, more)| (current, desired, desired + more));
        proptest::collection::vec(share, 1..8)
    }

    proptest! {
        #[test]
        fn parts_sum_up_to_the_total_and_dividing_by_them_gives_them(total in 0u32..300, shares in shares()) {
            let parts = parts(total, &shares);
            prop_assert_eq!(parts.iter().sum::<u32>(), total);
            let weights: Vec<_> = parts.iter().map(|part| (*part, u32::MAX)).collect();
            prop_assert_eq!(divide(total, &weights), parts);
        }

        #[test]
        fn a_division_that_was_made_stays_while_the_wishes_do(total in 0u32..300, shares in shares()) {
            let mut now = shares.clone();
            for _ in 0..3 {
                let parts = parts(total, &now);
                now = now.iter().zip(parts).map(|((_, desired, need), part)| (part, *desired, *need)).collect();
            }
            let again = parts(total, &now);
            prop_assert!(again.iter().zip(&now).all(|(part, (current, _, _))| part == current), "{:?} {:?}", now, again);
        }

        #[test]
        fn nobody_lacks_while_there_are_enough(more in 0u32..50, shares in shares()) {
            let total = shares.iter().map(|(_, desired, _)| desired).sum::<u32>() + more;
            for (part, (_, desired, _)) in parts(total, &shares).iter().zip(&shares) {
                prop_assert!(part >= desired);
            }
        }
    }
}
