//! Bodies: JSON, or YAML for those who write by hand. Fields that are there twice are found.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Reads JSON; tells the paths of fields that are there twice, of which the last counts.
pub(super) fn json(bytes: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let value = serde_json::from_slice(bytes)?;
    let found = RefCell::new(Vec::new());
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    Twice { path: String::new(), found: &found }.deserialize(&mut reader)?;
    Ok((value, found.into_inner()))
}

/// Reads YAML, of which JSON is a part.
pub(super) fn yaml(bytes: &[u8]) -> Result<Value, String> {
    if let Ok(value) = serde_json::from_slice(bytes) {
        return Ok(value);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    serde_saphyr::from_str(text).map_err(|error| error.to_string())
}

/// Walks over a value and notes fields that come a second time.
struct Twice<'a> {
    path: String,
    found: &'a RefCell<Vec<String>>,
}

impl Twice<'_> {
    fn below(&self, part: &str) -> Self {
        let path = match self.path.as_str() {
            "" => part.to_owned(),
            path if part.starts_with('[') => format!("{path}{part}"),
            path => format!("{path}.{part}"),
        };
        Self { path, found: self.found }
    }
}

impl<'de> DeserializeSeed<'de> for Twice<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Twice<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let below = self.below(&key);
            if !seen.insert(key) {
                self.found.borrow_mut().push(below.path.clone());
            }
            map.next_value_seed(below)?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        while items.next_element_seed(self.below(&format!("[{index}]")))?.is_some() {
            index += 1;
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_there_twice_are_found() {
        let text = br#"{"a": {"b": 1, "b": 2}, "list": [{}, {"c": null, "c": [1.5, true]}]}"#;
        let (value, twice) = json(text).unwrap();
        assert_eq!(value["a"]["b"], 2);
        assert_eq!(twice, ["a.b", "list[1].c"]);
        assert!(json(b"{\"a\": 1}").unwrap().1.is_empty());
        assert_eq!(yaml(b"a: {b: [1, x]}").unwrap(), serde_json::json!({"a": {"b": [1, "x"]}}));
    }
}
