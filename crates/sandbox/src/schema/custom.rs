//! The structure that a custom resource definition declares.

use std::sync::Arc;

use serde_json::Value;

use super::{Field, List, MapOf, Node, Relation, Scalar, Struct, metadata};

/// The structure of a custom resource, from its `openAPIV3Schema`.
pub(crate) fn custom(schema: &Value) -> Node {
    let mut root = match node(schema) {
        Node::Struct(fields) => (*fields).clone(),
        _ => Struct::default(),
    };
    let string = Node::Scalar { kind: Scalar::String, default: None };
    for (name, node) in [("apiVersion", string.clone()), ("kind", string), ("metadata", metadata())] {
        root.fields
            .insert(name.to_owned(), Field { node, merge_key: None, strategy: Vec::new(), always: false });
    }
    Node::Struct(Arc::new(root))
}

fn node(schema: &Value) -> Node {
    let flag = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
    if flag("x-kubernetes-embedded-resource") && schema.get("properties").is_none() {
        return Node::Any;
    }
    if flag("x-kubernetes-int-or-string") {
        return Node::Scalar { kind: Scalar::IntOrString, default: None };
    }
    let kind = match (text("type"), text("format")) {
        ("array", _) => {
            let items = schema.get("items").map_or(Node::Any, node);
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let keys = keys.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
            let relation = match text("x-kubernetes-list-type") {
                "map" => Relation::Map(keys),
                "set" => Relation::Set,
                _ => Relation::Atomic,
            };
            return Node::List(Arc::new(List { items, relation }));
        }
        ("object", _) => return object(schema),
        ("string", "date-time") => Scalar::DateTime,
        ("string", "byte") => Scalar::Bytes,
        ("string", _) => Scalar::String,
        ("integer", "int32") => Scalar::Int32,
        ("integer", _) => Scalar::Integer,
        ("number", _) => Scalar::Number,
        ("boolean", _) => Scalar::Boolean,
        _ => return Node::Any,
    };
    Node::Scalar { kind, default: schema.get("default").cloned() }
}

fn object(schema: &Value) -> Node {
    let atomic = schema.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic");
    match (schema.get("properties").and_then(Value::as_object), schema.get("additionalProperties")) {
        (Some(properties), _) => {
            let field = |schema: &Value| Field {
                node: node(schema),
                merge_key: None,
                strategy: Vec::new(),
                always: false,
            };
            let required = schema.get("required").and_then(Value::as_array);
            Node::Struct(Arc::new(Struct {
                fields: properties.iter().map(|(name, schema)| (name.clone(), field(schema))).collect(),
                required: required
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect(),
                atomic,
            }))
        }
        (None, Some(values)) if values.is_object() => {
            Node::Map(Arc::new(MapOf { values: node(values), atomic }))
        }
        _ if atomic => Node::Map(Arc::new(MapOf { values: Node::Any, atomic })),
        _ => Node::Any,
    }
}
