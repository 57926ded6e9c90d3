//! How fast all parts of a session are sent together.

use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How much may be made up for: the bucket holds what flows in this time.
const DEPTH: Duration = Duration::from_millis(50);
/// How often at least a connection that has its turn sends a frame.
const FRAMES_PER_SECOND: u64 = 4;

/// A token bucket.
pub(super) struct Pacer {
    rate: u64,
    /// When all that was taken has flowed in.
    paid: Mutex<Instant>,
}

impl Pacer {
    pub(super) fn new(bytes_per_second: NonZeroU64) -> Self {
        Self { rate: bytes_per_second.get(), paid: Mutex::new(Instant::now()) }
    }

    /// How many bytes to send at once, so that the other side need not wait long for the next.
    pub(super) fn chunk(&self) -> usize {
        usize::try_from((self.rate / FRAMES_PER_SECOND).max(1)).unwrap_or(usize::MAX)
    }

    /// Waits until so many bytes may be sent. Those who wait go in the order in which they came.
    pub(super) async fn take(&self, bytes: usize) {
        let nanos = (bytes as u128).saturating_mul(1_000_000_000) / u128::from(self.rate);
        let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let start = {
            let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let start = (*paid).max(now.checked_sub(DEPTH).unwrap_or(now));
            *paid = start.checked_add(cost).unwrap_or(start);
            start
        };
        sleep_until(start).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn many_share_what_one_may_send() {
        let pacer = Pacer::new(NonZeroU64::new(10_000).unwrap());
        let began = Instant::now();
        for _ in 0..10 {
            tokio::join!(pacer.take(1_000), pacer.take(1_000));
        }
        let (took, bucket) = (began.elapsed(), Duration::from_millis(200));
        assert!(took <= Duration::from_secs(2) && took >= Duration::from_secs(2) - bucket, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_is_not_made_up_for() {
        let pacer = Pacer::new(NonZeroU64::new(10_000).unwrap());
        tokio::time::advance(Duration::from_secs(60)).await;
        let began = Instant::now();
        for _ in 0..11 {
            pacer.take(1_000).await;
        }
        assert!(began.elapsed() >= Duration::from_millis(900), "{:?}", began.elapsed());
    }
}
