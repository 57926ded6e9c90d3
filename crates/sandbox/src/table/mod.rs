//! Tables: objects as `kubectl get` shows them.

mod builtin;
mod custom;
mod human;
mod jsonpath;
mod pods;
mod volumes;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::registry::Resource;
use crate::store::at;

pub(crate) use custom::PrinterColumn;

/// What a row of a table carries of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

/// One column of a table. Those of priority 1 are for wide output.
#[derive(Clone, Debug)]
struct Column {
    name: String,
    kind: String,
    format: String,
    priority: i64,
    description: String,
}

impl Column {
    fn new(name: &str, kind: &str, priority: i64) -> Self {
        let format = if name == "Name" { "name" } else { "" };
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            format: format.to_owned(),
            priority,
            description: String::new(),
        }
    }

    fn definition(&self) -> Value {
        json!({
            "name": self.name, "type": self.kind, "format": self.format, "description": self.description,
            "priority": self.priority,
        })
    }
}

/// A table of objects.
pub(crate) fn table(
    row: &Resource,
    objects: &[Value],
    include: Include,
    headers: bool,
    now: Timestamp,
) -> Value {
    let definitions: Vec<Value> =
        if headers { columns(row).iter().map(Column::definition).collect() } else { Vec::new() };
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let cells =
                if row.custom { custom::cells(row, object, now) } else { builtin::cells(row, object, now) };
            let shown = match include {
                Include::Nothing => Value::Null,
                Include::Metadata => partial(object),
                Include::Object => object.clone(),
            };
            json!({"cells": cells, "object": shown})
        })
        .collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": definitions,
        "rows": rows,
    })
}

fn columns(row: &Resource) -> Vec<Column> {
    if row.custom { custom::columns(row) } else { builtin::columns(row) }
}

/// An object's metadata alone.
pub(crate) fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    at(object, pointer).and_then(Value::as_str).unwrap_or_default()
}

fn number(object: &Value, pointer: &str) -> i64 {
    at(object, pointer).and_then(Value::as_i64).unwrap_or(0)
}

fn items<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + Clone {
    at(object, pointer).and_then(Value::as_array).map_or(&[][..], Vec::as_slice).iter()
}

/// How long ago a time was, as a table tells it.
fn age(object: &Value, pointer: &str, now: Timestamp) -> String {
    match text(object, pointer).parse::<Timestamp>() {
        Ok(then) => human::duration(now.duration_since(then)),
        Err(_) => "<unknown>".to_owned(),
    }
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "<none>" } else { text }
}
