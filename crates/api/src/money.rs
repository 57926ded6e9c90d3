//! Amounts of money, exact to a millionth.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An amount of money in millionths of the currency, never negative, written as a decimal number: `0.0416`.
///
/// Portolan knows no currencies: all prices and limits of a hub are in the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money {
    /// How many millionths.
    pub micros: u64,
}

/// Why a text is not [`Money`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not an amount of money: write a number with at most 6 digits behind the point, such as 0.0416"
)]
pub struct ParseMoneyError {
    /// The text as it was given.
    pub text: String,
}

/// The form of an amount, in the syntax shared by CEL, Go and JSON Schema.
const PATTERN: &str = r"^[0-9]{1,12}(\.[0-9]{1,6})?$";

/// 12 digits, the point and 6 digits.
const MAX_LENGTH: usize = 19;

const MICROS: u64 = 1_000_000;

impl Money {
    /// An amount in millionths.
    pub const fn from_micros(micros: u64) -> Self {
        Self { micros }
    }
}

impl FromStr for Money {
    type Err = ParseMoneyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseMoneyError { text: text.to_owned() };
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) if (1..=6).contains(&fraction.len()) => (whole, fraction),
            Some(_) => return Err(error()),
            None => (text, ""),
        };
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !(1..=12).contains(&whole.len()) || !digits(whole) || !digits(fraction) {
            return Err(error());
        }
        let whole: u64 = whole.parse().map_err(|_| error())?;
        let millionths: u64 = format!("{fraction:0<6}").parse().map_err(|_| error())?;
        Ok(Self { micros: whole * MICROS + millionths })
    }
}

impl fmt::Display for Money {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.micros / MICROS, self.micros % MICROS);
        if fraction == 0 {
            return write!(formatter, "{whole}");
        }
        let digits = format!("{fraction:06}");
        write!(formatter, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Money {
    fn schema_name() -> Cow<'static, str> {
        "Money".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "maxLength": MAX_LENGTH,
            "x-kubernetes-validations": [{
                "rule": format!("self.matches('{}')", PATTERN.replace('\\', "\\\\")),
                "message": "must be an amount of money in quotes, with at most 6 digits behind the point, such as \"0.0416\"",
            }],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_exactly() {
        for (text, micros, canonical) in [
            ("0.0416", 41_600, "0.0416"),
            ("1", 1_000_000, "1"),
            ("1.50", 1_500_000, "1.5"),
            ("0", 0, "0"),
            ("0.000001", 1, "0.000001"),
            ("999999999999.999999", 999_999_999_999_999_999, "999999999999.999999"),
        ] {
            let money: Money = text.parse().unwrap();
            assert_eq!(money, Money::from_micros(micros), "{text}");
            assert_eq!(money.to_string(), canonical);
        }
    }

    proptest::proptest! {
        /// What the API server lets in, a controller can read: otherwise one object would stop its watch.
        #[test]
        fn the_schema_and_the_parser_agree(text in "-?[0-9]{0,13}[.]?[0-9]{0,7}( |e3)?") {
            let schema = Money::json_schema(&mut SchemaGenerator::default()).to_value();
            let value = serde_json::Value::String(text.clone());
            let accepted = text.len() <= MAX_LENGTH && kube::core::cel::Validator::new().validate(&schema, &value, None).is_ok();
            proptest::prop_assert_eq!(accepted, text.parse::<Money>().is_ok(), "{}", text);
        }
    }
}
