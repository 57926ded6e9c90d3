//! Points in time, to the second: as the API writes them, so that a record reads back as it was.

use k8s_openapi::jiff::Timestamp;
use std::time::Duration;

/// The time without fractions of a second.
pub(crate) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// So long after a time.
pub(crate) fn after(time: Timestamp, duration: Duration) -> Timestamp {
    let whole =
        Duration::from_secs(duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0)));
    time.checked_add(whole).unwrap_or(Timestamp::MAX)
}

/// Whether so long has passed since a time. Never while there is no such time.
pub(crate) fn has_passed(since: Option<Timestamp>, duration: Duration, now: Timestamp) -> bool {
    since.is_some_and(|since| now >= after(since, duration))
}

/// How many whole seconds have passed; none if the clock was set back.
pub(crate) fn seconds_between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_second().saturating_sub(from.as_second())).unwrap_or(0)
}
