//! The only source of time below the binary.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use tokio::time::Instant;

/// By how much the machine's clock may differ from what was counted: clocks are slewed, and tasks wait for their turn.
const TOLERATED: SignedDuration = SignedDuration::from_secs(30);

/// Tells the time, counted from a given start on tokio's clock.
///
/// With tokio's time paused this is virtual time; otherwise it advances as the wall clock does.
/// A skewed copy shows what a machine with a wrong clock would see.
#[derive(Clone, Debug)]
pub struct Clock {
    epoch: Timestamp,
    start: Instant,
}

impl Clock {
    /// A clock that shows `epoch` now. Must be called within a tokio runtime when its time is paused.
    #[must_use]
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self { epoch, start: Instant::now() }
    }

    /// The time on this clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.start.elapsed()).unwrap_or(SignedDuration::MAX);
        self.epoch.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    /// By how much the machine's clock, which shows `wall`, was set since it was last asked for; nothing if it was not. A
    /// machine that was suspended has a clock that was set forward. One that is slewed for long is not set: `ahead` is by how
    /// much it was ahead of this clock when it was last asked for, and is by how much it is now.
    #[must_use]
    pub fn was_set_by(&self, wall: Timestamp, ahead: &mut SignedDuration) -> Option<SignedDuration> {
        let before = std::mem::replace(ahead, wall.duration_since(self.now()));
        let by = ahead.checked_sub(before).unwrap_or(*ahead);
        (by.abs() > TOLERATED).then_some(by)
    }

    /// A clock that is `by` ahead of this one (behind, if negative).
    #[must_use]
    pub fn skewed(&self, by: SignedDuration) -> Self {
        Self { epoch: self.epoch.saturating_add(by).unwrap_or(Timestamp::MAX), start: self.start }
    }

    /// Now, as Kubernetes writes it in metadata and conditions (whole seconds).
    #[must_use]
    pub fn time(&self) -> Time {
        let now = self.now();
        Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
    }

    /// Now, as Kubernetes writes it in leases and events (microseconds).
    #[must_use]
    pub fn micro_time(&self) -> MicroTime {
        MicroTime(self.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn follows_paused_time_and_keeps_its_skew() {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        let ahead = clock.skewed(SignedDuration::from_secs(5));
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(clock.now(), Timestamp::from_second(3600).unwrap());
        assert_eq!(ahead.now(), Timestamp::from_second(3605).unwrap());
        assert_eq!(clock.time().0, clock.now());
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_is_noticed_and_one_that_is_slewed_is_not() {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        tokio::time::advance(Duration::from_secs(3600)).await;
        let set_by = |second, ahead| {
            clock.was_set_by(Timestamp::from_second(second).unwrap(), &mut SignedDuration::from_secs(ahead))
        };
        assert_eq!(set_by(3600, 0), None);
        assert_eq!(set_by(3630, 0), None);
        assert_eq!(set_by(3631, 0), Some(SignedDuration::from_secs(31)));
        assert_eq!(set_by(3631, 10), None, "it came there by and by");
        assert_eq!(set_by(0, 0), Some(SignedDuration::from_hours(-1)));
        let mut ahead = SignedDuration::ZERO;
        let far = clock.was_set_by(Timestamp::MAX, &mut ahead);
        assert_eq!(far.map(|by| by.is_positive()), Some(true));
    }
}
