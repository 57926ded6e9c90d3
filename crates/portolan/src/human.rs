//! Numbers and times for people.

use jiff::Timestamp;
use portolan_api::placement::Resources;
pub(crate) use portolan_core::capacity::amount;
use portolan_core::capacity::milli;
use std::time::Duration;

/// How long ago something was, as kubectl says it: 45s, 12m, 3h, 2d.
pub(crate) fn age(since: Option<Timestamp>, now: Timestamp) -> String {
    let Some(since) = since else { return "<unknown>".to_owned() };
    match now.duration_since(since).as_secs().max(0) {
        seconds @ ..120 => format!("{seconds}s"),
        seconds @ ..7_200 => format!("{}m", seconds / 60),
        seconds @ ..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// A round-trip time: 12ms, 0.4ms, 1.2s.
pub(crate) fn round_trip(time: Duration) -> String {
    match time.as_secs_f64() * 1000.0 {
        milliseconds if milliseconds >= 1000.0 => format!("{:.1}s", milliseconds / 1000.0),
        milliseconds if milliseconds >= 10.0 => format!("{milliseconds:.0}ms"),
        milliseconds => format!("{milliseconds:.1}ms"),
    }
}

/// Of a resource, how much is taken of how much there is: `3.5/8 44%`. A dash where nothing is known.
pub(crate) fn share(name: &str, taken: &Resources, of: &Resources) -> String {
    let read = |from: &Resources| from.get(name).and_then(|quantity| milli(&quantity.0).ok());
    let Some(all) = read(of) else { return "-".to_owned() };
    let taken = read(taken).unwrap_or(0);
    let percent = if all > 0 { format!(" {}%", taken.saturating_mul(100) / all) } else { String::new() };
    format!("{}/{}{percent}", amount(name, taken), amount(name, all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

    #[test]
    fn ages_and_round_trips_are_short() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let ago = |seconds: i64| age(Timestamp::from_second(1_000_000 - seconds).ok(), now);
        assert_eq!([ago(5), ago(130), ago(7_300), ago(400_000)], ["5s", "2m", "2h", "4d"]);
        assert_eq!((age(None, now), ago(-9)), ("<unknown>".into(), "0s".into()));
        let times = [300, 12_400, 1_200_000].map(|micros| round_trip(Duration::from_micros(micros)));
        assert_eq!(times, ["0.3ms", "12ms", "1.2s"]);
    }

    #[test]
    fn shares_have_units_and_say_when_nothing_is_known() {
        let of = |name: &str, text: &str| Resources::from([(name.to_owned(), Quantity(text.into()))]);
        assert_eq!(share("cpu", &of("cpu", "3500m"), &of("cpu", "8")), "3.5/8 43%");
        assert_eq!(share("memory", &of("memory", "2Gi"), &of("memory", "16Gi")), "2Gi/16Gi 12%");
        assert_eq!(share("cpu", &Resources::new(), &Resources::new()), "-");
        assert_eq!(share("cpu", &Resources::new(), &of("cpu", "0")), "0/0");
    }
}
