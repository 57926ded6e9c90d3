//! Lengths of time as Kubernetes writes them: `500ms`, `90s`, `1h30m`.

use std::{borrow::Cow, fmt, str::FromStr, time};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A length of time, never negative, written in the units `us`, `ms`, `s`, `m`, `h` and `d`.
///
/// The same shape is required by the schema, so what the API server accepts always parses here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub time::Duration);

/// Why a text is not a [`Duration`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a duration: write numbers with the units us, ms, s, m, h or d, such as 500ms, 90s or 1h30m"
)]
pub struct ParseDurationError {
    /// The text as it was given.
    pub text: String,
}

/// Shorter and longer units, the longest first; with their nanoseconds.
const UNITS: [(&str, u128); 6] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
];

/// The form of a duration, in the syntax shared by CEL, Go and JSON Schema.
pub(crate) const PATTERN: &str = r"^([0-9]{1,9}(\.[0-9]{1,6})?(us|ms|s|m|h|d))+$";

/// No duration of the API needs more characters than this.
pub(crate) const MAX_LENGTH: usize = 40;

impl Duration {
    /// A duration of whole seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(time::Duration::from_secs(seconds))
    }

    /// A duration of whole milliseconds.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(time::Duration::from_millis(milliseconds))
    }

    /// A duration of whole microseconds.
    pub const fn from_micros(microseconds: u64) -> Self {
        Self(time::Duration::from_micros(microseconds))
    }
}

impl FromStr for Duration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseDurationError { text: text.to_owned() };
        if text.is_empty() || text.len() > MAX_LENGTH {
            return Err(error());
        }
        let mut nanoseconds: u128 = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let (term, after) = term(rest).ok_or_else(error)?;
            nanoseconds += term;
            rest = after;
        }
        let seconds = u64::try_from(nanoseconds / 1_000_000_000).map_err(|_| error())?;
        let below = u32::try_from(nanoseconds % 1_000_000_000).map_err(|_| error())?;
        Ok(Self(time::Duration::new(seconds, below)))
    }
}

/// One number with its unit in nanoseconds, and the text after it. At most 9 digits before the point and 6
/// after it, so that no sum of terms within [`MAX_LENGTH`] can overflow.
fn term(text: &str) -> Option<(u128, &str)> {
    let (whole, rest) = digits(text, 9)?;
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest, 6)?,
        None => ("", rest),
    };
    let unit_length = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_length);
    let (_, nanoseconds) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let whole: u128 = whole.parse().ok()?;
    let millionths: u128 = format!("{fraction:0<6}").parse().ok()?;
    Some((whole * nanoseconds + millionths * nanoseconds / 1_000_000, rest))
}

fn digits(text: &str, at_most: usize) -> Option<(&str, &str)> {
    let length = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (1..=at_most).contains(&length).then(|| text.split_at(length))
}

impl fmt::Display for Duration {
    /// The largest units first, the smallest one with a fraction: `1h30m`, `1m1.5s`, `2.43ms`, `250us`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let microseconds = self.0.as_nanos() / 1_000;
        match microseconds {
            0 => formatter.write_str("0s"),
            1..1_000 => write!(formatter, "{microseconds}us"),
            1_000..1_000_000 => fraction(formatter, microseconds, 1_000, "ms"),
            _ => {
                let (hours, rest) = (microseconds / 3_600_000_000, microseconds % 3_600_000_000);
                let (minutes, rest) = (rest / 60_000_000, rest % 60_000_000);
                for (number, unit) in [(hours, "h"), (minutes, "m")] {
                    if number > 0 {
                        write!(formatter, "{number}{unit}")?;
                    }
                }
                if rest > 0 { fraction(formatter, rest, 1_000_000, "s") } else { Ok(()) }
            }
        }
    }
}

/// A number of units of so many microseconds, with as many digits behind the point as it needs.
fn fraction(formatter: &mut fmt::Formatter<'_>, microseconds: u128, unit: u128, name: &str) -> fmt::Result {
    let (whole, rest) = (microseconds / unit, microseconds % unit);
    if rest == 0 {
        return write!(formatter, "{whole}{name}");
    }
    let width = unit.ilog10() as usize;
    let digits = format!("{rest:0width$}");
    write!(formatter, "{whole}.{}{name}", digits.trim_end_matches('0'))
}

impl From<time::Duration> for Duration {
    fn from(duration: time::Duration) -> Self {
        Self(duration)
    }
}

impl From<Duration> for time::Duration {
    fn from(duration: Duration) -> Self {
        duration.0
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Duration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "maxLength": MAX_LENGTH,
            "x-kubernetes-validations": [{
                "rule": format!("self.matches('{}')", PATTERN.replace('\\', "\\\\")),
                "message": "must be a duration in us, ms, s, m, h or d, such as 500ms, 90s or 1h30m",
            }],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_the_usual_forms() {
        for (text, milliseconds, canonical) in [
            ("500ms", 500, "500ms"),
            ("90s", 90_000, "1m30s"),
            ("1h30m", 5_400_000, "1h30m"),
            ("1.5s", 1_500, "1.5s"),
            ("2h1m1.5s", 7_261_500, "2h1m1.5s"),
            ("0s", 0, "0s"),
            ("24h", 86_400_000, "24h"),
            ("7d", 604_800_000, "168h"),
        ] {
            let duration: Duration = text.parse().unwrap();
            assert_eq!(duration, Duration::from_millis(milliseconds), "{text}");
            assert_eq!(duration.to_string(), canonical);
            assert_eq!(canonical.parse::<Duration>().unwrap(), duration);
        }
        assert_eq!(Duration::from_micros(2_430).to_string(), "2.43ms");
        assert_eq!("0.25ms".parse::<Duration>().unwrap(), Duration::from_micros(250));
    }

    #[test]
    fn refuses_what_the_schema_refuses() {
        for text in ["", "5", "-5s", "5 s", "1w", "s", ".5s", "5.s", "1h-3m", "1234567890s", "1h30"] {
            let error = text.parse::<Duration>().unwrap_err();
            assert_eq!(error.text, text);
        }
        assert!("999999999h999999999h999999999h".parse::<Duration>().is_ok());
        assert!("1s".repeat(30).parse::<Duration>().is_err());
    }

    proptest::proptest! {
        /// What the API server lets in, a controller can read: otherwise one object would stop its watch.
        #[test]
        fn the_schema_and_the_parser_agree(text in "([0-9]{0,10}[.]?[0-9]{0,7}(us|ms|s|m|h|d|w| |-)?){0,3}") {
            let schema = Duration::json_schema(&mut SchemaGenerator::default()).to_value();
            let value = serde_json::Value::String(text.clone());
            let accepted = text.len() <= MAX_LENGTH && kube::core::cel::Validator::new().validate(&schema, &value, None).is_ok();
            proptest::prop_assert_eq!(accepted, text.parse::<Duration>().is_ok(), "{}", text);
        }

        #[test]
        fn what_is_written_reads_back(microseconds in 0u64..400_000_000_000_000) {
            let duration = Duration::from_micros(microseconds);
            proptest::prop_assert_eq!(duration.to_string().parse::<Duration>(), Ok(duration));
        }
    }
}
