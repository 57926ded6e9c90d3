//! Amounts of CPU and memory as Kubernetes writes them.

use portolan_core::capacity::milli;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;

/// An amount such as 500m, 2 or 4Gi, never negative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// As it is written.
    pub text: String,
    /// In thousandths.
    pub milli: i64,
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Text(String),
            Number(serde_json::Number),
        }
        let text = match Written::deserialize(deserializer)? {
            Written::Text(text) => text,
            Written::Number(number) => number.to_string(),
        };
        let milli = milli(&text).map_err(de::Error::custom)?;
        if milli < 0 {
            return Err(de::Error::custom(format!("{text} is less than 0")));
        }
        Ok(Self { text, milli })
    }
}

impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An amount as Kubernetes writes it, such as 500m, 2 or 4Gi.",
            "type": ["string", "number"],
        })
    }
}
