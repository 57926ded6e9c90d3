//! How far members are from each other, by what both of them report.

use std::collections::BTreeMap;
use std::time::Duration;

/// The round-trip time of each pair of members of which at least one reports, the names in order. `reported` is who reports, the
/// other one, and the time.
///
/// If both report, the longer time counts. If only one does, it counts as no shorter than the difference between the two members'
/// distances from the hub, which a member cannot shorten by lying in its report.
#[must_use]
pub fn agreed<'a>(
    reported: impl Iterator<Item = (&'a str, &'a str, Duration)>,
    from_hub: impl Fn(&str) -> Option<Duration>,
) -> BTreeMap<(&'a str, &'a str), Duration> {
    let mut pairs: BTreeMap<(&str, &str), BTreeMap<&str, Duration>> = BTreeMap::new();
    for (from, to, time) in reported {
        let pair = if from < to { (from, to) } else { (to, from) };
        pairs.entry(pair).or_default().insert(from, time);
    }
    let least = |one: &str, other: &str| Some(from_hub(one)?.abs_diff(from_hub(other)?));
    let settled = pairs.into_iter().filter_map(|((one, other), times)| {
        let longest = times.values().max().copied()?;
        let is_one_word = times.len() == 1;
        let least = if is_one_word { least(one, other) } else { None };
        Some(((one, other), longest.max(least.unwrap_or_default())))
    });
    settled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn of_two_times_the_longer_one_counts_and_one_alone_is_bounded_by_the_way_over_the_hub() {
        let from_hub = |name: &str| match name {
            "lille" => Some(ms(5)),
            "rome" => Some(ms(30)),
            _ => None,
        };
        let one = |reported: &[(&'static str, &'static str, Duration)]| {
            let agreed = agreed(reported.iter().copied(), from_hub);
            assert_eq!(agreed.len(), 1, "{agreed:?}");
            agreed.into_iter().next().unwrap()
        };
        let (there, back) = (("lille", "rome", ms(1)), ("rome", "lille", ms(12)));
        assert_eq!(one(&[there, back]), (("lille", "rome"), ms(12)));
        assert_eq!(one(&[back, there]), (("lille", "rome"), ms(12)));
        assert_eq!(one(&[there]), (("lille", "rome"), ms(25)), "rome is not so near to lille");
        assert_eq!(one(&[("rome", "lille", ms(40))]), (("lille", "rome"), ms(40)));
        assert_eq!(one(&[("rome", "oslo", ms(2))]), (("oslo", "rome"), ms(2)), "oslo is not measured yet");
    }
}
