//! Points in time that come again, in the syntax of a CronJob.
//!
//! Five fields: minute, hour, day of the month, month, day of the week, with `*`, lists, ranges, steps and English names;
//! or one of `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. If both days are given, either of them is enough.
//! Published parsers bring a second library of time with them, and leave open what a clock change does; both matter here.
//!
//! A time that a clock change skips is the moment of the change. A time that comes twice is the first one.

use super::cron_field::FIELDS;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan};

/// Points in time that come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether a day has to be one of `days` and of `weekdays`; otherwise one is enough.
    both_days: bool,
}

/// Text that is not a cron expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a cron expression such as 0 8 * * MON-FRI: {problem}")]
pub struct InvalidCron {
    /// What was read.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
}

const SHORT_FORMS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// The most days that each month has.
const DAYS_OF_MONTHS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// In how many days every expression comes again: 29 February may take eight years.
const DAYS_SEARCHED: usize = 8 * 366;

impl Cron {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, InvalidCron> {
        let invalid = |problem: String| InvalidCron { text: text.to_owned(), problem };
        let trimmed = text.trim();
        let long = SHORT_FORMS.iter().find(|(short, _)| *short == trimmed).map_or(trimmed, |(_, long)| long);
        if long.starts_with("TZ=") || long.starts_with("CRON_TZ=") {
            return Err(invalid("the time zone belongs in timeZone".to_owned()));
        }
        let parts: Vec<&str> = long.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = parts[..] else {
            return Err(invalid(format!("it has {} fields instead of 5", parts.len())));
        };
        let read = |text: &str, index: usize| FIELDS[index].read(text).map_err(invalid);
        let weekdays = read(weekday, 4)?;
        let cron = Self {
            minutes: read(minute, 0)?,
            hours: read(hour, 1)?,
            days: read(day, 2)?,
            months: read(month, 3)?,
            // 7 is Sunday, too.
            weekdays: (weekdays | weekdays >> 7) & 0x7f,
            both_days: is_any(day) || is_any(weekday),
        };
        let comes = (1..13u32)
            .zip(DAYS_OF_MONTHS)
            .any(|(month, most)| has(cron.months, month) && (1..=most).any(|day| has(cron.days, day)));
        if cron.both_days && !comes {
            return Err(invalid("no month that it names has such a day".to_owned()));
        }
        Ok(cron)
    }

    /// The last time at or before `now`.
    #[must_use]
    pub fn last(&self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let first = zone.to_datetime(now).date().checked_add(1.day()).ok()?;
        let days = std::iter::successors(Some(first), |day| day.yesterday().ok()).take(DAYS_SEARCHED);
        let days = days.filter(|day| self.is_on(*day));
        days.flat_map(|day| self.times(day).rev())
            .filter_map(|time| instant(time, zone))
            .find(|time| *time <= now)
    }

    /// The next time after `now`.
    #[must_use]
    pub fn next(&self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let first = zone.to_datetime(now).date().checked_sub(1.day()).ok()?;
        let days = std::iter::successors(Some(first), |day| day.tomorrow().ok()).take(DAYS_SEARCHED);
        let days = days.filter(|day| self.is_on(*day));
        days.flat_map(|day| self.times(day)).filter_map(|time| instant(time, zone)).find(|time| *time > now)
    }

    fn is_on(&self, date: Date) -> bool {
        let day = has(self.days, unsigned(date.day()));
        let weekday = has(self.weekdays, unsigned(date.weekday().to_sunday_zero_offset()));
        let right = if self.both_days { day && weekday } else { day || weekday };
        right && has(self.months, unsigned(date.month()))
    }

    /// The times of a day, in order.
    fn times(&self, date: Date) -> impl DoubleEndedIterator<Item = DateTime> {
        let (hours, minutes) = (self.hours, self.minutes);
        let hours = (0..24i8).filter(move |hour| has(hours, unsigned(*hour)));
        hours.flat_map(move |hour| {
            let minutes = (0..60i8).filter(move |minute| has(minutes, unsigned(*minute)));
            minutes.map(move |minute| date.at(hour, minute, 0, 0))
        })
    }
}

/// Whether a field of days leaves the choice to the other one.
fn is_any(field: &str) -> bool {
    field == "*" || field == "?"
}

fn has(bits: u64, value: u32) -> bool {
    bits >> value & 1 == 1
}

fn unsigned(value: i8) -> u32 {
    u32::from(value.unsigned_abs())
}

/// The moment of a time on the clock. Later times never give an earlier moment.
fn instant(time: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(time);
    if matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. }) {
        let before = ambiguous.earlier().ok()?;
        return zone.following(before).next().map(|change| change.timestamp());
    }
    ambiguous.compatible().ok()
}

#[cfg(test)]
#[path = "cron_tests.rs"]
mod tests;
