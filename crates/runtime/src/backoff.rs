//! How long to wait before trying again.

use crate::Seed;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(30);

/// Exponential backoff with jitter drawn from a seed: each wait lies between half and the whole of twice the
/// one before, up to 30 s.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
    rng: ChaCha8Rng,
}

impl Backoff {
    /// A backoff that has not failed yet.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        Self { next: FIRST, rng: seed.rng() }
    }

    /// The wait after one more failure.
    pub fn failed(&mut self) -> Duration {
        let whole = self.next;
        self.next = (whole * 2).min(LONGEST);
        jittered(whole, &mut self.rng)
    }

    /// Forgets the failures: it worked.
    pub fn succeeded(&mut self) {
        self.next = FIRST;
    }
}

/// The wait after the `failures`-th failure in a row of something that is retried among many.
pub(crate) fn delay(failures: u32, rng: &mut ChaCha8Rng) -> Duration {
    let whole =
        FIRST.saturating_mul(1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX)).min(LONGEST);
    jittered(whole, rng)
}

fn jittered(whole: Duration, rng: &mut ChaCha8Rng) -> Duration {
    let half = whole / 2;
    let thousandths = u32::try_from(rng.next_u64() % 1000).unwrap_or(0);
    half + half * thousandths / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_to_its_limit_and_starts_again_after_success() {
        let mut backoff = Backoff::new(Seed::new(1));
        let waits: Vec<_> = (0..12).map(|_| backoff.failed()).collect();
        assert!(waits[0] >= FIRST / 2 && waits[0] < FIRST);
        assert!(waits[11] >= LONGEST / 2 && waits[11] < LONGEST);
        backoff.succeeded();
        assert!(backoff.failed() < FIRST);
    }

    #[test]
    fn a_retry_never_overflows_or_exceeds_the_limit() {
        let mut rng = Seed::new(1).rng();
        for failures in [0, 1, 8, 31, 32, 64, u32::MAX] {
            assert!(delay(failures, &mut rng) <= LONGEST);
        }
    }
}
