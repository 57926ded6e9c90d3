//! How long to wait between tries.

use std::time::Duration;

/// The pauses between tries: each is twice as long as the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first pause.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
    /// From which the pauses are shortened by up to a half, differently for every part; none for no jitter.
    pub seed: Option<u64>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_millis(200), longest: Duration::from_secs(10), seed: None }
    }
}

impl Backoff {
    /// The pause after that many tries of a part of the session.
    pub(super) fn pause(&self, part: u64, tries: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(tries.saturating_sub(1));
        let pause = self.first.saturating_mul(doubled).min(self.longest);
        let Some(seed) = self.seed else { return pause };
        let drawn = mixed(mixed(mixed(seed) ^ part) ^ u64::from(tries)) % 1024;
        let share = u32::try_from(drawn).unwrap_or(0);
        pause.saturating_sub((pause / 2048).saturating_mul(share))
    }
}

/// One step of SplitMix64.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let backoff = Backoff::default();
        let millis: Vec<u128> = (1..9).map(|tries| backoff.pause(0, tries).as_millis()).collect();
        assert_eq!(millis, [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(backoff.pause(0, u32::MAX), backoff.longest);
    }

    #[test]
    fn jitter_is_drawn_from_the_seed() {
        let backoff = Backoff { seed: Some(7), ..Backoff::default() };
        let pauses = |part| (1..9).map(|tries| backoff.pause(part, tries)).collect::<Vec<_>>();
        assert_eq!(pauses(0), pauses(0));
        assert_ne!(pauses(0), pauses(1));
        for (tries, pause) in (1..9).zip(pauses(0)) {
            let full = Backoff::default().pause(0, tries);
            assert!(pause <= full && pause >= full / 2);
        }
    }
}
