//! The columns that a custom resource definition declares.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Column, age, human, jsonpath, text};
use crate::registry::Resource;

/// A declared column.
#[derive(Clone, Debug)]
pub(crate) struct PrinterColumn {
    name: String,
    kind: String,
    format: String,
    priority: i64,
    description: String,
    path: String,
}

impl PrinterColumn {
    /// The columns of one version of a definition.
    pub(crate) fn of(version: &Value) -> Vec<Self> {
        let columns = version.get("additionalPrinterColumns").and_then(Value::as_array);
        let column = |column: &Value| {
            let text = |key: &str| column.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            Self {
                name: text("name"),
                kind: text("type"),
                format: text("format"),
                priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
                description: text("description"),
                path: text("jsonPath"),
            }
        };
        columns.into_iter().flatten().map(column).collect()
    }
}

pub(super) fn columns(row: &Resource) -> Vec<Column> {
    let mut out = vec![Column::new("Name", "string", 0)];
    for column in &row.columns {
        out.push(Column {
            name: column.name.clone(),
            kind: column.kind.clone(),
            format: column.format.clone(),
            priority: column.priority,
            description: column.description.clone(),
        });
    }
    if row.columns.is_empty() {
        out.push(Column::new("Age", "date", 0));
    }
    out
}

pub(super) fn cells(row: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    let mut out = vec![json!(text(object, "/metadata/name"))];
    for column in &row.columns {
        let found = jsonpath::find(object, &column.path);
        let first = found.first().filter(|value| !value.is_null());
        out.push(match (column.kind.as_str(), first) {
            (_, None) => Value::Null,
            ("date", Some(value)) => match value.as_str().and_then(|text| text.parse::<Timestamp>().ok()) {
                Some(then) => json!(human::duration(now.duration_since(then))),
                None => json!("<unknown>"),
            },
            ("integer" | "number" | "boolean", Some(value)) => (*value).clone(),
            (_, Some(_)) => {
                let all: Vec<String> = found.iter().map(|value| jsonpath::shown(value)).collect();
                json!(all.join(" "))
            }
        });
    }
    if row.columns.is_empty() {
        out.push(json!(age(object, "/metadata/creationTimestamp", now)));
    }
    out
}
