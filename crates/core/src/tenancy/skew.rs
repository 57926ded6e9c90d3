//! How far two clocks are apart.

use jiff::{SignedDuration, Timestamp};
use std::fmt;

/// What two machines of one network differ by, and a request may take, without anybody minding.
const TOLERATED: SignedDuration = SignedDuration::from_secs(60);

/// By how much a clock differs from that of the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSkew {
    /// How far it is ahead; behind, if negative.
    pub ahead: SignedDuration,
}

/// Whether two clocks that were read at the same moment differ by more than is tolerated.
#[must_use]
pub fn clock_skew(here: Timestamp, there: Timestamp) -> Option<ClockSkew> {
    let ahead = here.duration_since(there);
    (ahead.abs() > TOLERATED).then_some(ClockSkew { ahead })
}

impl fmt::Display for ClockSkew {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.ahead.as_secs().unsigned_abs();
        let minutes = seconds.div_ceil(60);
        let side = if self.ahead.is_negative() { "behind" } else { "ahead of" };
        let plural = if minutes == 1 { "" } else { "s" };
        write!(formatter, "the clock here is {minutes} minute{plural} {side} that of the provider")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_named_in_minutes_with_its_side() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(clock_skew(at(1060), at(1000)), None);
        let told = |here, there| clock_skew(at(here), at(there)).map(|skew| skew.to_string());
        assert_eq!(told(1600, 1000).unwrap(), "the clock here is 10 minutes ahead of that of the provider");
        assert_eq!(told(1000, 1590).unwrap(), "the clock here is 10 minutes behind that of the provider");
    }
}
