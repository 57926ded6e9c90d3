//! Durations as people read them.

use jiff::SignedDuration;

/// `45s`, `3m10s`, `5h`, `2d3h`: at most two units, and only as fine as it matters.
pub(super) fn duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |first: i64, unit: &str, second: i64, small: &str| {
        if second == 0 { format!("{first}{unit}") } else { format!("{first}{unit}{second}{small}") }
    };
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => two(days, "d", hours % 24, "h"),
        () if days < 365 * 2 => format!("{days}d"),
        () if days < 365 * 8 => two(days / 365, "y", days % 365, "d"),
        () => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        let shown = |seconds: i64| duration(SignedDuration::from_secs(seconds));
        assert_eq!(shown(119), "119s");
        assert_eq!(shown(190), "3m10s");
        assert_eq!(shown(3600), "60m");
        assert_eq!(shown(3 * 3600 + 600), "3h10m");
        assert_eq!(shown(50 * 3600), "2d2h");
        assert_eq!(shown(-5), "<invalid>");
    }
}
