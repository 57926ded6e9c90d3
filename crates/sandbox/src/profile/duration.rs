//! Durations as they are written: `2s`, `1m30s`, `250ms`.

use std::time::Duration;

use serde::{Deserialize as _, Deserializer, Serializer};

pub(super) fn parse(text: &str) -> Option<Duration> {
    text.parse::<jiff::SignedDuration>().ok()?.try_into().ok()
}

#[allow(clippy::ref_option, reason = "serde asks for it")]
pub(super) fn serialize<S: Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match value.map(jiff::SignedDuration::try_from) {
        Some(Ok(duration)) => serializer.serialize_str(&format!("{duration:#}")),
        Some(Err(error)) => Err(serde::ser::Error::custom(error)),
        None => serializer.serialize_none(),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    parse(&text).map(Some).ok_or_else(|| {
        serde::de::Error::custom(format!("{text:?} is not a duration: write it as 2s or 1m30s"))
    })
}
