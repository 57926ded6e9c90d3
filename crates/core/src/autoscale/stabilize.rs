//! Stabilization windows: a number that was recommended a short while ago holds the next one back.

use super::memory::{Recommended, is_within};
use jiff::{SignedDuration, Timestamp};

/// What is left of a recommendation after the windows.
///
/// Replicas become more only up to the least number of the window for more, and fewer only down to the largest number of
/// the window for fewer.
pub(super) fn stabilize(
    current: u32,
    desired: u32,
    past: &[Recommended],
    up_window: SignedDuration,
    down_window: SignedDuration,
    now: Timestamp,
) -> u32 {
    let within = |window: SignedDuration| {
        past.iter().filter(move |each| is_within(each.at, window, now)).map(|each| each.replicas)
    };
    let at_most_up = within(up_window).min().map_or(desired, |least| least.min(desired));
    let at_least_down = within(down_window).max().map_or(desired, |most| most.max(desired));
    current.max(at_most_up).min(at_least_down)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoscale::test_support::at;

    #[test]
    fn the_windows_hold_back_in_their_direction() {
        // At second 1000, with windows of 60 seconds for more and 600 for fewer.
        type Case<'a> = (&'a str, u32, u32, &'a [(i64, u32)], u32);
        let cases: [Case<'_>; 9] = [
            ("nothing is remembered", 5, 8, &[], 8),
            ("fewer, and nothing is remembered", 5, 2, &[], 2),
            ("the least of the last minute", 5, 8, &[(930, 3), (950, 6), (980, 7)], 6),
            ("fewer was recommended within the minute", 5, 8, &[(950, 4)], 5),
            ("the largest of the last ten minutes", 5, 2, &[(390, 9), (500, 4), (980, 3)], 4),
            ("more was recommended within ten minutes", 5, 2, &[(500, 9)], 5),
            ("exactly ten minutes are over", 5, 2, &[(400, 9)], 2),
            ("a second less is not", 5, 2, &[(401, 9)], 5),
            ("nothing to do", 5, 5, &[(500, 9), (980, 1)], 5),
        ];
        for (about, current, desired, past, expected) in cases {
            let past: Vec<_> = past
                .iter()
                .map(|(second, replicas)| Recommended { replicas: *replicas, at: at(*second) })
                .collect();
            let seconds = SignedDuration::from_secs;
            assert_eq!(
                stabilize(current, desired, &past, seconds(60), seconds(600), at(1000)),
                expected,
                "{about}"
            );
        }
    }
}
