//! The structure of objects: their fields, how their lists merge, what is required.

mod builtin;
mod custom;
pub(crate) mod openapi;
mod types;
mod unknown;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

pub(crate) use builtin::{OBJECT_META, builtin, metadata};
pub(crate) use custom::custom;
pub(crate) use types::type_error;
pub(crate) use unknown::drop_unknown;

/// The kinds of scalar that Kubernetes tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    String,
    Bytes,
    DateTime,
    Int32,
    Integer,
    Number,
    Boolean,
    /// Quantities and the like: a string or a number.
    IntOrString,
}

/// The structure of one value.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Scalar {
        kind: Scalar,
        default: Option<Value>,
    },
    /// Of no declared structure: maps merge by key, lists are atomic.
    Any,
    Struct(Arc<Struct>),
    /// A type of the built-in table, by position.
    Named(usize),
    List(Arc<List>),
    Map(Arc<MapOf>),
}

/// An object with named fields.
#[derive(Clone, Debug, Default)]
pub(crate) struct Struct {
    pub(crate) fields: BTreeMap<String, Field>,
    pub(crate) required: Vec<String>,
    pub(crate) atomic: bool,
}

/// A field of a struct, with the hints of a strategic merge patch.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) node: Node,
    pub(crate) merge_key: Option<String>,
    pub(crate) strategy: Vec<String>,
    /// In Go it is no pointer and never left out: an object that does not have it has it empty.
    pub(crate) always: bool,
}

/// A list and how it merges.
#[derive(Clone, Debug)]
pub(crate) struct List {
    pub(crate) items: Node,
    pub(crate) relation: Relation,
}

/// How the items of two lists are matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Atomic,
    Set,
    Map(Vec<String>),
}

/// An object with arbitrary keys.
#[derive(Clone, Debug)]
pub(crate) struct MapOf {
    pub(crate) values: Node,
    pub(crate) atomic: bool,
}

impl Node {
    /// This node, looked up if it is a name.
    pub(crate) fn resolve(&self) -> &Node {
        match self {
            Node::Named(index) => builtin::type_at(*index),
            other => other,
        }
    }

    /// The structure of the field `name`, and whether the field is named in a struct.
    pub(crate) fn field(&self, name: &str) -> (&Node, bool) {
        match self.resolve() {
            Node::Struct(fields) => match fields.fields.get(name) {
                Some(field) => (&field.node, true),
                None => (&Node::Any, false),
            },
            Node::Map(map) => (&map.values, false),
            _ => (&Node::Any, false),
        }
    }

    /// The declaration of the field `name` of a struct.
    pub(crate) fn declared(&self, name: &str) -> Option<&Field> {
        match self.resolve() {
            Node::Struct(fields) => fields.fields.get(name),
            _ => None,
        }
    }

    /// An object of this structure in which all is empty, as Go makes it.
    pub(crate) fn empty(&self) -> Value {
        match self.resolve() {
            Node::Struct(_) => {
                let mut out = Value::Object(serde_json::Map::new());
                self.complete(&mut out);
                out
            }
            Node::List(_) => Value::Array(Vec::new()),
            _ => Value::Object(serde_json::Map::new()),
        }
    }

    /// Adds what is always there.
    pub(crate) fn complete(&self, value: &mut Value) {
        let (Node::Struct(declared), Some(fields)) = (self.resolve(), value.as_object_mut()) else { return };
        for (name, field) in declared.fields.iter().filter(|(_, field)| field.always) {
            match fields.get_mut(name) {
                Some(present) if !present.is_null() => field.node.complete(present),
                _ => {
                    fields.insert(name.clone(), field.node.empty());
                }
            }
        }
    }

    /// What the list's items look like and how they are matched.
    pub(crate) fn list(&self) -> (&Node, &Relation) {
        match self.resolve() {
            Node::List(list) => (&list.items, &list.relation),
            _ => (&Node::Any, &Relation::Atomic),
        }
    }

    /// True for objects that are replaced as a whole.
    pub(crate) fn is_atomic_object(&self) -> bool {
        match self.resolve() {
            Node::Struct(fields) => fields.atomic,
            Node::Map(map) => map.atomic,
            Node::Scalar { .. } | Node::List(_) => true,
            Node::Any | Node::Named(_) => false,
        }
    }

    /// The default of a scalar.
    pub(crate) fn default(&self) -> Option<&Value> {
        match self.resolve() {
            Node::Scalar { default, .. } => default.as_ref(),
            _ => None,
        }
    }
}
