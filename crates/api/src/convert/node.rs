//! YAML and JSON as a tree that remembers where everything stood.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Number, Value};
use serde_saphyr::Spanned;

use super::place::{ConvertError, Place, Position, Problem};

/// A value and its position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) content: Content,
    pub(super) position: Position,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    Null,
    Boolean(bool),
    Number(Number),
    Text(String),
    Sequence(Vec<Node>),
    /// Keys with their positions, in the order of the input.
    Mapping(Vec<(Key, Node)>),
}

/// A key of a mapping and its position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) position: Position,
}

/// The documents of a text that are not empty.
pub(super) fn parse(input: &str) -> Result<Vec<Node>, ConvertError> {
    let options = serde_saphyr::options! { with_snippet: false };
    let documents: Vec<Spanned<Content>> =
        serde_saphyr::from_multiple_with_options(input, options).map_err(|error| {
            let position = error.location().map(position);
            ConvertError {
                place: Place { position, ..Place::default() },
                problem: Problem::Syntax(error.to_string()),
            }
        })?;
    Ok(documents.into_iter().map(node).collect())
}

impl Node {
    /// The value without positions.
    pub(super) fn to_value(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Boolean(value) => Value::Bool(*value),
            Content::Number(value) => Value::Number(value.clone()),
            Content::Text(value) => Value::String(value.clone()),
            Content::Sequence(items) => items.iter().map(Node::to_value).collect(),
            Content::Mapping(entries) => {
                entries.iter().map(|(key, value)| (key.name.clone(), value.to_value())).collect()
            }
        }
    }

    /// What the value is, in words.
    pub(super) fn kind(&self) -> &'static str {
        match &self.content {
            Content::Null => "null",
            Content::Boolean(_) => "a boolean",
            Content::Number(_) => "a number",
            Content::Text(_) => "a text",
            Content::Sequence(_) => "a list",
            Content::Mapping(_) => "a mapping",
        }
    }
}

fn node(spanned: Spanned<Content>) -> Node {
    Node { content: spanned.value, position: position(spanned.referenced) }
}

fn position(location: serde_saphyr::Location) -> Position {
    Position { line: location.line(), column: location.column() }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Content, E> {
        let number =
            Number::from_f64(value).ok_or_else(|| E::custom(format!("{value} is not a finite number")))?;
        Ok(Content::Number(number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::Text(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
        Content::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Content, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element::<Spanned<Content>>()? {
            items.push(node(item));
        }
        Ok(Content::Sequence(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Content, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = access.next_entry::<Spanned<String>, Spanned<Content>>()? {
            entries.push((Key { name: key.value, position: position(key.referenced) }, node(value)));
        }
        Ok(Content::Mapping(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u64, column: u64) -> Position {
        Position { line, column }
    }

    #[test]
    fn positions_of_keys_and_values() {
        let documents = parse("a: 1\nb:\n  - x\n  - {c: true}\n---\n\"d\"\n").unwrap();
        assert_eq!(documents.len(), 2);
        let Content::Mapping(entries) = &documents[0].content else { panic!("{documents:?}") };
        assert_eq!((entries[0].0.position, entries[0].1.position), (at(1, 1), at(1, 4)));
        let Content::Sequence(items) = &entries[1].1.content else { panic!("{documents:?}") };
        assert_eq!(items[0].position, at(3, 5));
        let Content::Mapping(inner) = &items[1].content else { panic!("{documents:?}") };
        assert_eq!((inner[0].0.name.as_str(), inner[0].0.position), ("c", at(4, 6)));
        assert_eq!(documents[1].content, Content::Text("d".into()));
        assert_eq!(documents[1].position, at(6, 1));
    }

    #[test]
    fn json_is_read_as_well() {
        let documents = parse("{\"a\": [1, -2.5, null, \"x\"]}").unwrap();
        assert_eq!(documents[0].to_value(), serde_json::json!({"a": [1, -2.5, null, "x"]}));
    }

    #[test]
    fn errors_have_a_position() {
        let error = parse("a: 1\nb: [\n").unwrap_err();
        assert!(error.place.position.is_some_and(|position| position.line >= 2), "{error}");
        let error = parse("a: 1\na: 2\n").unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_a_crash() {
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert!(parse(&"{a: ".repeat(100_000)).is_err());
    }
}
