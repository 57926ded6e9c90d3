//! The `scale` subresource.

use std::sync::Arc;

use serde_json::{Value, json};

use super::update::Part;
use super::{convert, metadata};
use crate::api::{Api, Writer};
use crate::error::ApiError;
use crate::registry::{Resource, ScalePaths};
use crate::store::at;

impl Api {
    /// The scale of an object.
    pub(crate) fn get_scale(&self, row: &Resource, namespace: &str, name: &str) -> Result<Value, ApiError> {
        let paths = row.scale.as_ref().ok_or_else(ApiError::no_such_path)?;
        Ok(scale_of(row, paths, &self.live(row, namespace, name)?.value()))
    }

    /// Sets the replicas from a Scale that `change` makes of the present one.
    pub(crate) fn set_scale(
        &mut self,
        row: &Arc<Resource>,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value) -> Result<(), ApiError>,
        writer: &Writer,
    ) -> Result<Value, ApiError> {
        let paths = row.scale.as_ref().ok_or_else(ApiError::no_such_path)?;
        let live = self.live(row, namespace, name)?;
        let mut object = Value::clone(&convert::shown(row, &live));
        let before = scale_of(row, paths, &object);
        let mut scale = before.clone();
        change(&mut scale)?;
        let version = metadata::text(&scale, "resourceVersion");
        if !version.is_empty() && version != live.revision.to_string() {
            return Err(ApiError::modified(row.about(name)));
        }
        let replicas = at(&scale, "/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
        if replicas < 0 {
            let cause = crate::error::Cause::invalid(
                "spec.replicas",
                &json!(replicas),
                "must be greater than or equal to 0",
            );
            return Err(ApiError::invalid("autoscaling", "Scale", name, &[cause]));
        }
        set_at(&mut object, &paths.spec, json!(replicas));
        let answer = self.write(row, &live, Part::Scale, object, writer, true)?;
        Ok(scale_of(row, paths, &answer.value()))
    }
}

fn scale_of(row: &Resource, paths: &ScalePaths, object: &Value) -> Value {
    let number = |pointer: &str| at(object, pointer).and_then(Value::as_i64).unwrap_or(0);
    let metadata = &object["metadata"];
    let mut status = json!({ "replicas": number(&paths.status) });
    let selector = match &paths.selector {
        Some(pointer) => at(object, pointer).and_then(Value::as_str).map(str::to_owned),
        None if !row.custom => at(object, "/spec/selector").map(written_selector),
        None => None,
    };
    if let Some(selector) = selector {
        status["selector"] = json!(selector);
    }
    let mut kept = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = metadata.get(field) {
            kept[field] = value.clone();
        }
    }
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": kept,
        "spec": { "replicas": number(&paths.spec) },
        "status": status,
    })
}

/// A structured selector in its written form.
fn written_selector(selector: &Value) -> String {
    let mut parts = Vec::new();
    for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        parts.push(format!("{key}={}", value.as_str().unwrap_or_default()));
    }
    for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = expression.get("key").and_then(Value::as_str).unwrap_or_default();
        let values: Vec<&str> = expression
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        parts.push(match expression.get("operator").and_then(Value::as_str).unwrap_or_default() {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.join(",")
}

fn set_at(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for part in pointer.split('/').skip(1) {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[part];
    }
    *place = value;
}
