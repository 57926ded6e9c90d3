//! Whether the values of an object are of the declared types, as the API server's decoder would say.

use base64::prelude::BASE64_STANDARD as BASE64;
use base64::{DecodeError, Engine};
use serde_json::Value;

use super::{Node, Scalar};

/// The first value of a wrong type, worded as Go's decoder words it.
pub(crate) fn type_error(value: &Value, node: &Node) -> Option<String> {
    walk(value, node, "", "")
}

fn walk(value: &Value, node: &Node, owner: &str, path: &str) -> Option<String> {
    let name = match node {
        Node::Named(index) => super::builtin::name_at(*index),
        _ => owner,
    };
    let wrong = |wanted: &str| {
        let place = if path.is_empty() { owner.to_owned() } else { format!("{owner}.{path}") };
        Some(format!("json: cannot unmarshal {} into Go struct field {place} of type {wanted}", kind(value)))
    };
    match (node.resolve(), value) {
        (_, Value::Null) | (Node::Any | Node::Named(_), _) => None,
        (Node::Struct(declared), Value::Object(fields)) => fields.iter().find_map(|(key, child)| {
            let field = declared.fields.get(key)?;
            walk(child, &field.node, name, &join(path, key))
        }),
        (Node::Map(map), Value::Object(fields)) => {
            fields.iter().find_map(|(_, child)| walk(child, &map.values, name, path))
        }
        (Node::List(list), Value::Array(items)) => {
            items.iter().find_map(|item| walk(item, &list.items, name, path))
        }
        (Node::Struct(_), _) => wrong(&go_name(name)),
        (Node::Map(_), _) => wrong("map[string]string"),
        (Node::List(list), _) => match &list.items {
            Node::Named(index) => wrong(&format!("[]{}", go_name(super::builtin::name_at(*index)))),
            _ => wrong("[]string"),
        },
        (Node::Scalar { kind, .. }, value) => match (kind, value) {
            (Scalar::Bytes, Value::String(text)) => {
                bad_base64(text).map(|at| format!("illegal base64 data at input byte {at}"))
            }
            (Scalar::String | Scalar::DateTime, Value::String(_))
            | (Scalar::IntOrString, Value::String(_) | Value::Number(_))
            | (Scalar::Number, Value::Number(_))
            | (Scalar::Boolean, Value::Bool(_)) => None,
            (Scalar::Int32, Value::Number(number))
                if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) =>
            {
                None
            }
            (Scalar::Integer, Value::Number(number)) if number.is_i64() => None,
            (Scalar::Int32, _) => wrong("int32"),
            (Scalar::Integer, _) => wrong("int64"),
            (Scalar::Number, _) => wrong("float64"),
            (Scalar::Boolean, _) => wrong("bool"),
            (Scalar::DateTime, _) => wrong("v1.Time"),
            (Scalar::Bytes, _) => wrong("[]uint8"),
            (Scalar::IntOrString, _) => wrong("intstr.IntOrString"),
            (Scalar::String, _) => wrong("string"),
        },
    }
}

/// Where bytes stop being base64, line breaks aside.
fn bad_base64(text: &str) -> Option<usize> {
    let bytes: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    match BASE64.decode(&bytes) {
        Ok(_) => None,
        Err(DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _)) => Some(at),
        Err(_) => Some(bytes.len()),
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// `DeploymentSpec` as Go names it with its package, `v1.DeploymentSpec`.
fn go_name(name: &str) -> String {
    format!("v1.{name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::builtin;
    use serde_json::json;

    #[test]
    fn wrong_types_are_named_as_the_decoder_names_them() {
        let node = builtin("apps", "v1", "Deployment");
        assert_eq!(
            type_error(&json!({"spec": {"replicas": "two"}}), &node).unwrap(),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
        );
        assert_eq!(
            type_error(
                &json!({"spec": {"replicas": 2, "strategy": {"rollingUpdate": {"maxSurge": "1%"}}}}),
                &node
            ),
            None
        );
        assert!(type_error(&json!({"metadata": {"labels": {"a": 1}}}), &node).is_some());
        assert!(type_error(&json!({"spec": []}), &node).is_some());
    }
}
