//! The structure of the built-in kinds, read once from the generated table.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use super::{Field, List, MapOf, Node, Relation, Scalar, Struct};

pub(super) const STRUCTURE: &[u8] = include_bytes!("structure.json");
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

struct Table {
    kinds: BTreeMap<String, usize>,
    types: Vec<Node>,
    /// The last part of each type's name.
    names: Vec<String>,
    metadata: Node,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    // The table is part of the binary; `the_table_is_complete` proves that it parses.
    let document: Value = serde_json::from_slice(STRUCTURE).unwrap_or_default();
    let empty = Map::new();
    let types = document.get("types").and_then(Value::as_object).unwrap_or(&empty);
    let positions: BTreeMap<&str, usize> =
        types.keys().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
    let kinds = document.get("kinds").and_then(Value::as_object).unwrap_or(&empty);
    Table {
        kinds: kinds
            .iter()
            .filter_map(|(kind, name)| Some((kind.clone(), *positions.get(name.as_str()?)?)))
            .collect(),
        names: types.keys().map(|name| name.rsplit('.').next().unwrap_or_default().to_owned()).collect(),
        types: types.values().map(|value| node(value, &positions)).collect(),
        metadata: positions.get(OBJECT_META).map_or(Node::Any, |index| Node::Named(*index)),
    }
});

/// The structure of a built-in kind.
pub(crate) fn builtin(group: &str, version: &str, kind: &str) -> Node {
    TABLE.kinds.get(&format!("{group}/{version}/{kind}")).map_or(Node::Any, |index| Node::Named(*index))
}

/// The structure of `metadata`.
pub(crate) fn metadata() -> Node {
    TABLE.metadata.clone()
}

pub(super) fn name_at(index: usize) -> &'static str {
    TABLE.names.get(index).map_or("", String::as_str)
}

pub(super) fn type_at(index: usize) -> &'static Node {
    match TABLE.types.get(index) {
        Some(Node::Named(other)) if *other != index => type_at(*other),
        Some(found) => found,
        None => &Node::Any,
    }
}

fn node(value: &Value, positions: &BTreeMap<&str, usize>) -> Node {
    match value {
        Value::String(text) => match text.strip_prefix('#') {
            Some(name) => named(name, positions),
            None => scalar(text, None),
        },
        Value::Object(object) => {
            if let Some(name) = object.get("ref").and_then(Value::as_str) {
                named(name, positions)
            } else if let Some(kind) = object.get("scalar").and_then(Value::as_str) {
                scalar(kind, object.get("default").cloned())
            } else if let Some(items) = object.get("items") {
                let relation = match object.get("list").and_then(Value::as_str) {
                    Some("map") => Relation::Map(strings(object.get("keys"))),
                    Some("set") => Relation::Set,
                    _ => Relation::Atomic,
                };
                Node::List(Arc::new(List { items: node(items, positions), relation }))
            } else if let Some(values) = object.get("values") {
                let atomic = object.contains_key("atomic");
                Node::Map(Arc::new(MapOf { values: node(values, positions), atomic }))
            } else if let Some(fields) = object.get("fields").and_then(Value::as_object) {
                let required = strings(object.get("required"));
                let field = |(name, value): (&String, &Value)| {
                    (name.clone(), field(value, positions, required.contains(name)))
                };
                let fields = fields.iter().map(field).collect();
                Node::Struct(Arc::new(Struct { fields, required, atomic: object.contains_key("atomic") }))
            } else {
                Node::Any
            }
        }
        _ => Node::Any,
    }
}

fn field(value: &Value, positions: &BTreeMap<&str, usize>, required: bool) -> Field {
    let hint = |key: &str| value.get(key).and_then(Value::as_str);
    let holds_others = value.get("items").is_some() || value.get("values").is_some();
    Field {
        always: value.get("always").is_some() || required && holds_others,
        node: node(value, positions),
        merge_key: hint("mergeKey").map(str::to_owned),
        strategy: hint("strategy").into_iter().flat_map(|s| s.split(',')).map(str::to_owned).collect(),
    }
}

fn named(name: &str, positions: &BTreeMap<&str, usize>) -> Node {
    positions.get(name).map_or(Node::Any, |index| Node::Named(*index))
}

fn scalar(kind: &str, default: Option<Value>) -> Node {
    let kind = match kind {
        "string" => Scalar::String,
        "byte" => Scalar::Bytes,
        "date-time" => Scalar::DateTime,
        "int32" => Scalar::Int32,
        "integer" => Scalar::Integer,
        "number" => Scalar::Number,
        "boolean" => Scalar::Boolean,
        "int-or-string" => Scalar::IntOrString,
        _ => return Node::Any,
    };
    Node::Scalar { kind, default }
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_complete() {
        let pod = builtin("", "v1", "Pod");
        let (spec, named) = pod.field("spec");
        assert!(named);
        let (containers, _) = spec.field("containers");
        let (item, relation) = containers.list();
        assert_eq!(*relation, Relation::Map(vec!["name".to_owned()]));
        let (ports, _) = item.field("ports");
        let (port, relation) = ports.list();
        assert_eq!(*relation, Relation::Map(vec!["containerPort".to_owned(), "protocol".to_owned()]));
        assert_eq!(port.field("protocol").0.default(), Some(&Value::from("TCP")));
        assert!(metadata().field("labels").1);
        assert!(matches!(builtin("apps", "v1", "Deployment").resolve(), Node::Struct(_)));
    }
}
