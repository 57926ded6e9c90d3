//! An object as it depends on values: one description, from which both the object and its Helm template come.

use serde_json::{Map, Value, json};

/// A part of an object. A path names a value, such as `controller.resources`.
pub(crate) enum Node {
    /// Always the same.
    Fixed(Value),
    /// The value at a path.
    Value(&'static str),
    /// Text of several parts.
    Text(Vec<Part>),
    /// The value at a path, as a text in JSON.
    JsonText(&'static str),
    /// Fields, and those of the map at a path; the former go before the latter.
    Extended(Value, &'static str),
    /// One of two, by whether the value at the path is set.
    Either(&'static str, Box<Node>, Box<Node>),
    /// Fields.
    Object(Vec<Field>),
    /// Items.
    List(Vec<Item>),
}

/// A part of a text.
pub(crate) enum Part {
    /// Always the same.
    Fixed(&'static str),
    /// The value at a path.
    Value(&'static str),
}

/// A field of an object; with a path, only if the value there is set.
pub(crate) struct Field {
    pub(crate) when: Option<&'static str>,
    pub(crate) key: &'static str,
    pub(crate) node: Node,
}

/// Items of a list.
pub(crate) enum Item {
    One(Node),
    /// One, only if the value at the path is set.
    When(&'static str, Node),
    /// Each of the list at the path.
    Each(&'static str),
    /// An object with a name for each of the list at the path.
    Named(&'static str),
}

pub(crate) fn fixed(value: impl Into<Value>) -> Node {
    Node::Fixed(value.into())
}

pub(crate) fn object<const N: usize>(fields: [Field; N]) -> Node {
    Node::Object(fields.into_iter().collect())
}

pub(crate) fn field(key: &'static str, node: Node) -> Field {
    Field { when: None, key, node }
}

pub(crate) fn field_when(when: &'static str, key: &'static str, node: Node) -> Field {
    Field { when: Some(when), key, node }
}

impl Node {
    /// The part for these values.
    pub(crate) fn evaluate(&self, values: &Value) -> Value {
        match self {
            Self::Fixed(value) => value.clone(),
            Self::Value(path) => at(values, path).clone(),
            Self::Text(parts) => parts.iter().map(|part| part.evaluate(values)).collect::<String>().into(),
            Self::JsonText(path) => at(values, path).to_string().into(),
            Self::Extended(fixed, path) => crate::merge(at(values, path).clone(), fixed),
            Self::Either(path, then, otherwise) => {
                if is_set(at(values, path)) { then } else { otherwise }.evaluate(values)
            }
            Self::Object(fields) => {
                let holds = |field: &&Field| field.when.is_none_or(|path| is_set(at(values, path)));
                let each = |field: &Field| (field.key.to_owned(), field.node.evaluate(values));
                Value::Object(fields.iter().filter(holds).map(each).collect::<Map<_, _>>())
            }
            Self::List(items) => {
                let each = |item: &Item| match item {
                    Item::One(node) => vec![node.evaluate(values)],
                    Item::When(path, node) if is_set(at(values, path)) => vec![node.evaluate(values)],
                    Item::When(..) => Vec::new(),
                    Item::Each(path) => items_at(values, path).cloned().collect(),
                    Item::Named(path) => items_at(values, path).map(|name| json!({"name": name})).collect(),
                };
                Value::Array(items.iter().flat_map(each).collect())
            }
        }
    }
}

impl Part {
    fn evaluate(&self, values: &Value) -> String {
        match self {
            Self::Fixed(text) => (*text).to_owned(),
            Self::Value(path) => match at(values, path) {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            },
        }
    }
}

/// The value at a path.
pub(crate) fn at<'a>(values: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(values, |value, key| &value[key])
}

fn items_at<'a>(values: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> {
    at(values, path).as_array().into_iter().flatten()
}

/// Whether a value counts as set: as in Helm, nothing empty and not false.
pub(crate) fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}
