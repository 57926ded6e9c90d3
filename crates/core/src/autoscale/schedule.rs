//! The least number of replicas that holds at a time.

use super::cron::{Cron, InvalidCron};
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use portolan_api::autoscaling::MinimumSchedule;

/// The least number of replicas that holds now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minimum {
    /// How many.
    pub replicas: u32,
    /// The name of the schedule that asks for them, if one does.
    pub schedule: Option<String>,
    /// When a schedule next begins or ends.
    pub changes_at: Option<Timestamp>,
    /// Schedules that cannot be read. They do not hold.
    pub invalid: Vec<InvalidSchedule>,
}

/// A schedule that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSchedule {
    /// Its start or end is no cron expression.
    #[error("schedule {name}: {problem}")]
    Time {
        /// The name of the schedule.
        name: String,
        /// What is wrong.
        problem: InvalidCron,
    },
    /// Its time zone is not known.
    #[error("schedule {name}: {zone:?} is not a time zone such as Europe/Paris")]
    Zone {
        /// The name of the schedule.
        name: String,
        /// What was read.
        zone: String,
    },
}

/// The least number of replicas that holds now: the largest of `least` and of the schedules that have begun and not ended,
/// but never more than `most`.
#[must_use]
pub fn minimum(least: u32, most: u32, schedules: &[MinimumSchedule], now: Timestamp) -> Minimum {
    let mut minimum =
        Minimum { replicas: least.min(most), schedule: None, changes_at: None, invalid: Vec::new() };
    for schedule in schedules {
        let hours = match Hours::read(schedule) {
            Ok(hours) => hours,
            Err(invalid) => {
                minimum.invalid.extend(invalid);
                continue;
            }
        };
        let replicas = u32::try_from(schedule.min_replicas).unwrap_or(0).min(most);
        if hours.contain(now) && replicas > minimum.replicas {
            minimum.replicas = replicas;
            minimum.schedule = Some(schedule.name.clone());
        }
        let next = hours.changes_at(now);
        minimum.changes_at = [minimum.changes_at, next].into_iter().flatten().min();
    }
    minimum
}

/// The time in which a schedule holds.
struct Hours {
    start: Cron,
    end: Cron,
    zone: TimeZone,
}

impl Hours {
    /// Reads a schedule, or tells all that is wrong with it.
    fn read(schedule: &MinimumSchedule) -> Result<Self, Vec<InvalidSchedule>> {
        let name = || schedule.name.clone();
        let cron =
            |text: &str| Cron::parse(text).map_err(|problem| InvalidSchedule::Time { name: name(), problem });
        let zone = TimeZoneDatabase::bundled().get(&schedule.time_zone);
        let zone = zone.map_err(|_| InvalidSchedule::Zone { name: name(), zone: schedule.time_zone.clone() });
        match (cron(&schedule.start), cron(&schedule.end), zone) {
            (Ok(start), Ok(end), Ok(zone)) => Ok(Self { start, end, zone }),
            (start, end, zone) => Err([start.err(), end.err(), zone.err()].into_iter().flatten().collect()),
        }
    }

    /// Whether the last start is not before the last end: what ends and starts in the same minute goes on.
    fn contain(&self, now: Timestamp) -> bool {
        let start = self.start.last(now, &self.zone);
        start.is_some() && start >= self.end.last(now, &self.zone)
    }

    fn changes_at(&self, now: Timestamp) -> Option<Timestamp> {
        let next = [self.start.next(now, &self.zone), self.end.next(now, &self.zone)];
        next.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn schedule(name: &str, start: &str, end: &str, zone: &str, min_replicas: i32) -> MinimumSchedule {
        let (name, start, end) = (name.to_owned(), start.to_owned(), end.to_owned());
        MinimumSchedule { name, start, end, time_zone: zone.to_owned(), min_replicas }
    }

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_largest_minimum_that_holds_counts() {
        let schedules = [
            schedule("office", "0 8 * * MON-FRI", "0 18 * * MON-FRI", "Europe/Paris", 10),
            schedule("lunch", "30 11 * * *", "0 14 * * *", "Europe/Paris", 20),
            schedule("night", "0 22 * * *", "0 6 * * *", "Asia/Tokyo", 4),
        ];
        // 2026-01-05 is a Monday. Paris is one hour ahead, Tokyo nine: its night is from 13:00 to 21:00 UTC.
        let cases = [
            ("2026-01-05T06:59:59Z", 2, None, "2026-01-05T07:00:00Z"),
            ("2026-01-05T07:00:00Z", 10, Some("office"), "2026-01-05T10:30:00Z"),
            ("2026-01-05T10:30:00Z", 20, Some("lunch"), "2026-01-05T13:00:00Z"),
            ("2026-01-05T13:00:00Z", 10, Some("office"), "2026-01-05T17:00:00Z"),
            ("2026-01-05T17:00:00Z", 4, Some("night"), "2026-01-05T21:00:00Z"),
            ("2026-01-05T21:00:00Z", 2, None, "2026-01-06T07:00:00Z"),
            ("2026-01-04T08:00:00Z", 2, None, "2026-01-04T10:30:00Z"), // a Sunday
            ("2026-07-06T06:00:00Z", 10, Some("office"), "2026-07-06T09:30:00Z"), // two hours ahead in summer
        ];
        for (now, replicas, name, changes_at) in cases {
            let found = minimum(2, 100, &schedules, time(now));
            assert_eq!((found.replicas, found.schedule.as_deref()), (replicas, name), "{now}");
            assert_eq!(found.changes_at, Some(time(changes_at)), "{now}");
        }
    }

    #[test]
    fn what_cannot_be_read_does_not_hold_and_is_told() {
        let schedules = [
            schedule("a", "0 25 * * *", "0 18 * * *", "Etc/UTC", 9),
            schedule("b", "0 8 * * *", "0 18 * * *", "Europe/Atlantis", 9),
            schedule("c", "0 0 * * *", "0 18 * * *", "Etc/UTC", 9),
            schedule("d", "8", "0 18 * *", "Paris", 9),
        ];
        let found = minimum(2, 5, &schedules, time("2026-01-05T12:00:00Z"));
        assert_eq!(
            (found.replicas, found.schedule.as_deref()),
            (5, Some("c")),
            "never more than the maximum"
        );
        let told: Vec<String> = found.invalid.iter().map(ToString::to_string).collect();
        assert_eq!(
            told[0],
            "schedule a: \"0 25 * * *\" is not a cron expression such as 0 8 * * MON-FRI: the hour cannot be \"25\", \
             but is from 0 to 23"
        );
        assert_eq!(told[1], "schedule b: \"Europe/Atlantis\" is not a time zone such as Europe/Paris");
        assert_eq!(told.len(), 2 + 3, "all that is wrong is told: {told:?}");
    }

    proptest! {
        #[test]
        fn nothing_changes_before_it_is_told_to(
            start in (0u32..60, 0u32..24), end in (0u32..60, 0u32..24), second in 1_700_000_000i64..1_800_000_000,
            zone in proptest::sample::select(vec!["Etc/UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe"]),
        ) {
            prop_assume!(start != end);
            let cron = |(minute, hour): (u32, u32)| format!("{minute} {hour} * * *");
            let schedules = [schedule("a", &cron(start), &cron(end), zone, 9)];
            let now = Timestamp::from_second(second).unwrap();
            let found = minimum(2, 100, &schedules, now);
            let until = found.changes_at.unwrap();
            prop_assert!(until > now && until.duration_since(now).as_hours() <= 26);
            let before = until - jiff::SignedDuration::from_secs(1);
            prop_assert_eq!(minimum(2, 100, &schedules, before).replicas, found.replicas);
            let after = minimum(2, 100, &schedules, until).replicas;
            // Only a clock change can make start and end the same moment.
            prop_assert!(after != found.replicas || zone != "Etc/UTC");
        }
    }
}
