//! Dividing replicas over clusters without losing or adding one.

/// Divides `total` in proportion to the weights, by largest remainder, giving nobody more than its cap.
///
/// What a cap keeps from one goes to the others. The parts sum up to `total`, or to the sum of the caps of those with
/// weight if that is less. Equal remainders are served in the given order.
#[must_use]
pub fn divide(total: u32, shares: &[(u32, u32)]) -> Vec<u32> {
    let mut parts = vec![0u32; shares.len()];
    let mut left = total;
    while left > 0 {
        let open = |&index: &usize| shares[index].0 > 0 && parts[index] < shares[index].1;
        let open: Vec<usize> = (0..shares.len()).filter(open).collect();
        let weight: u64 = open.iter().map(|&index| u64::from(shares[index].0)).sum();
        if weight == 0 {
            break;
        }
        let ideal = |index: usize| u64::from(left) * u64::from(shares[index].0);
        let mut round: Vec<(usize, u32)> = open
            .iter()
            .map(|&index| (index, u32::try_from(ideal(index) / weight).unwrap_or(u32::MAX)))
            .collect();
        let mut extra = u64::from(left) - round.iter().map(|(_, part)| u64::from(*part)).sum::<u64>();
        let mut by_remainder: Vec<usize> = (0..round.len()).collect();
        by_remainder.sort_by_key(|&position| std::cmp::Reverse(ideal(round[position].0) % weight));
        for position in by_remainder {
            if extra == 0 {
                break;
            }
            round[position].1 += 1;
            extra -= 1;
        }
        for (index, part) in round {
            let taken = part.min(shares[index].1 - parts[index]);
            parts[index] += taken;
            left -= taken;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MANY: u32 = u32::MAX;

    #[test]
    fn largest_remainders_get_the_rest() {
        assert_eq!(divide(10, &[(1, MANY), (1, MANY), (1, MANY)]), [4, 3, 3]);
        assert_eq!(divide(10, &[(1, MANY), (2, MANY), (4, MANY)]), [1, 3, 6]);
        assert_eq!(divide(2, &[(1, MANY), (1, MANY), (1, MANY)]), [1, 1, 0], "fewer replicas than clusters");
    }

    #[test]
    fn what_a_full_cluster_cannot_take_goes_to_the_others() {
        assert_eq!(divide(9, &[(1, 1), (1, MANY), (1, MANY)]), [1, 4, 4]);
        assert_eq!(divide(9, &[(1, 1), (1, 2), (1, 3)]), [1, 2, 3]);
        assert_eq!(divide(9, &[(0, MANY), (1, 2)]), [0, 2]);
        assert_eq!(divide(9, &[]), Vec::<u32>::new());
    }

    proptest! {
        #[test]
        fn nothing_is_lost_added_or_over_the_cap(total in 0u32..2000, shares in proptest::collection::vec((0u32..1000, 0u32..500), 0..12)) {
            let parts = divide(total, &shares);
            let room: u32 = shares.iter().filter(|(weight, _)| *weight > 0).map(|(_, cap)| cap).sum();
            prop_assert_eq!(parts.iter().sum::<u32>(), total.min(room));
            for (part, (weight, cap)) in parts.iter().zip(&shares) {
                prop_assert!(part <= cap && (*weight > 0 || *part == 0));
            }
        }
    }
}
