//! Numbers and lists in words.

use jiff::SignedDuration;
use std::time::Duration;

/// How many names are listed.
const NAMED: usize = 8;

/// A length of time, in the unit that fits it.
#[must_use]
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{:.1} ms", time.as_secs_f64() * 1000.0),
        1..=9 => format!("{:.1} s", time.as_secs_f64()),
        10..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        7200..=172_799 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// The same for one that has a direction; the direction is left out.
pub(super) fn length(time: SignedDuration) -> String {
    span(time.unsigned_abs())
}

/// Names, some of them if they are many.
pub(super) fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// So many of something.
pub(super) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
