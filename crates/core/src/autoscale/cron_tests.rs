use super::*;
use jiff::tz::TimeZoneDatabase;
use proptest::prelude::*;

fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap()
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn expressions_give_the_last_and_the_next_time() {
    // 2026-03-11 is a Wednesday.
    let now = time("2026-03-11T10:20:30Z");
    let cases = [
        ("* * * * *", "2026-03-11T10:20:00Z", "2026-03-11T10:21:00Z"),
        ("*/15 * * * *", "2026-03-11T10:15:00Z", "2026-03-11T10:30:00Z"),
        ("5/20 * * * *", "2026-03-11T10:05:00Z", "2026-03-11T10:25:00Z"),
        ("0 8 * * *", "2026-03-11T08:00:00Z", "2026-03-12T08:00:00Z"),
        ("0 8-18/5 * * *", "2026-03-11T08:00:00Z", "2026-03-11T13:00:00Z"),
        ("0 8,12 * * *", "2026-03-11T08:00:00Z", "2026-03-11T12:00:00Z"),
        ("0 0 * * MON-FRI", "2026-03-11T00:00:00Z", "2026-03-12T00:00:00Z"),
        ("0 0 * * sat,sun", "2026-03-08T00:00:00Z", "2026-03-14T00:00:00Z"),
        ("0 0 * * 7", "2026-03-08T00:00:00Z", "2026-03-15T00:00:00Z"),
        ("0 0 * * 5-7", "2026-03-08T00:00:00Z", "2026-03-13T00:00:00Z"),
        ("0 0 31 * ?", "2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z"),
        ("0 0 1 JAN *", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("0 0 29 2 *", "2024-02-29T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("0 0 13 * 5", "2026-03-06T00:00:00Z", "2026-03-13T00:00:00Z"), // the 13th, and every Friday
        ("0 0 30 2 0", "2026-02-22T00:00:00Z", "2027-02-07T00:00:00Z"), // Sundays of February
        ("@weekly", "2026-03-08T00:00:00Z", "2026-03-15T00:00:00Z"),
        (" @hourly ", "2026-03-11T10:00:00Z", "2026-03-11T11:00:00Z"),
    ];
    for (text, last, next) in cases {
        let cron = Cron::parse(text).unwrap();
        let found = (cron.last(now, &TimeZone::UTC), cron.next(now, &TimeZone::UTC));
        assert_eq!(found, (Some(time(last)), Some(time(next))), "{text}");
    }
    let exact = Cron::parse("20 10 * * *").unwrap();
    let moment = time("2026-03-11T10:20:00Z");
    assert_eq!(exact.last(moment, &TimeZone::UTC), Some(moment), "a time is its own last one");
    assert_eq!(exact.next(moment, &TimeZone::UTC), Some(time("2026-03-12T10:20:00Z")));
}

#[test]
fn what_cannot_be_read_is_told() {
    let cases = [
        ("", "it has 0 fields instead of 5"),
        ("0 8 * *", "it has 4 fields instead of 5"),
        ("0 0 8 * * *", "it has 6 fields instead of 5"),
        ("60 8 * * *", "the minute cannot be \"60\", but is from 0 to 59"),
        ("0 24 * * *", "the hour cannot be \"24\", but is from 0 to 23"),
        ("0 8 0 * *", "the day of the month cannot be \"0\", but is from 1 to 31"),
        ("0 8 * FOO *", "the month cannot be \"FOO\", but is from 1 to 12"),
        ("0 8 * * 8", "the day of the week cannot be \"8\", but is from 0 to 7"),
        ("0 18-8 * * *", "the hour cannot be \"18-8\", but is from 0 to 23"),
        ("*/0 * * * *", "the minute cannot be \"*/0\", but is from 0 to 59"),
        ("0,,5 * * * *", "the minute cannot be \"\", but is from 0 to 59"),
        ("+5 * * * *", "the minute cannot be \"+5\", but is from 0 to 59"),
        ("0 0 31 2,4 *", "no month that it names has such a day"),
        ("TZ=Europe/Paris 0 8 * * *", "the time zone belongs in timeZone"),
        ("@fortnightly", "it has 1 fields instead of 5"),
    ];
    for (text, problem) in cases {
        assert_eq!(Cron::parse(text).unwrap_err().problem, problem, "{text}");
    }
}

#[test]
fn clock_changes_neither_lose_nor_double_a_time() {
    let paris = zone("Europe/Paris");
    let cron = Cron::parse("30 2 * * *").unwrap();
    // On 2026-03-29 the clock goes from 02:00 to 03:00, which is 01:00 UTC.
    let spring = cron.next(time("2026-03-28T12:00:00Z"), &paris);
    assert_eq!(
        spring,
        Some(time("2026-03-29T01:00:00Z")),
        "a time that is skipped is the moment of the change"
    );
    assert_eq!(Cron::parse("0 2 * * *").unwrap().next(time("2026-03-28T12:00:00Z"), &paris), spring);
    // On 2026-10-25 it goes from 03:00 to 02:00, which is 01:00 UTC; 02:30 is at 00:30 and at 01:30 UTC.
    let autumn = cron.next(time("2026-10-24T12:00:00Z"), &paris).unwrap();
    assert_eq!(autumn, time("2026-10-25T00:30:00Z"));
    assert_eq!(cron.next(autumn, &paris), Some(time("2026-10-26T01:30:00Z")));
}

fn expression() -> impl Strategy<Value = String> {
    let list = |least: u32, most: u32| {
        let single = (least..=most).prop_map(|value| value.to_string());
        let range = (least..=most, least..=most, 1u32..9)
            .prop_map(|(one, other, step)| format!("{}-{}/{step}", one.min(other), one.max(other)));
        prop_oneof![3 => Just("*".to_owned()), 4 => single, 2 => range]
    };
    let fields = (list(0, 59), list(0, 23), list(1, 28), list(1, 12), list(0, 7));
    fields.prop_map(|(minute, hour, day, month, weekday)| format!("{minute} {hour} {day} {month} {weekday}"))
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[-0-9A-Z*/?,@ ]{0,20}|.*") {
        let _ = Cron::parse(&text);
    }

    #[test]
    fn between_the_last_and_the_next_time_there_is_none(
        text in expression(), second in 1_700_000_000i64..1_900_000_000,
        name in proptest::sample::select(vec!["Etc/UTC", "Europe/Paris", "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia"]),
    ) {
        let (cron, zone) = (Cron::parse(&text).unwrap(), zone(name));
        let now = Timestamp::from_second(second).unwrap();
        let (Some(last), Some(next)) = (cron.last(now, &zone), cron.next(now, &zone)) else {
            panic!("{text} comes again and again");
        };
        prop_assert!(last <= now && now < next);
        prop_assert_eq!(cron.next(last, &zone), Some(next));
        prop_assert_eq!(cron.last(next, &zone), Some(next));
        let before = next - jiff::SignedDuration::from_secs(1);
        prop_assert_eq!(cron.last(before, &zone), Some(last));
    }

    #[test]
    fn in_utc_it_is_the_minutes_that_match(text in expression(), second in 1_700_000_000i64..1_900_000_000) {
        let cron = Cron::parse(&text).unwrap();
        let now = Timestamp::from_second(second).unwrap();
        let last = TimeZone::UTC.to_datetime(cron.last(now, &TimeZone::UTC).unwrap());
        prop_assert_eq!((last.second(), last.subsec_nanosecond()), (0, 0));
        prop_assert!(cron.is_on(last.date()) && cron.times(last.date()).any(|time| time == last));
    }
}
