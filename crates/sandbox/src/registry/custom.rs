//! The rows that a custom resource definition adds.

use std::sync::Arc;

use serde_json::Value;

use super::{Generation, Nature, Resource, ScalePaths};
use crate::crd::Definition;
use crate::schema::{self, Node};
use crate::store::at;
use crate::table::PrinterColumn;

/// A row for every served version of an established definition.
pub(crate) fn rows(definition: &Value) -> Vec<Resource> {
    let text = |pointer: &str| at(definition, pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let strings = |pointer: &str| -> Vec<String> {
        let items = at(definition, pointer).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let versions = at(definition, "/spec/versions").and_then(Value::as_array);
    let versions: Vec<&Value> = versions.into_iter().flatten().collect();
    let flag = |version: &Value, key: &str| version.get(key).and_then(Value::as_bool).unwrap_or(false);
    let group = text("/spec/group");
    let plural = text("/spec/names/plural");
    let stored = versions.iter().find(|version| flag(version, "storage"));
    let stored = stored.and_then(|version| version.get("name")).and_then(Value::as_str).unwrap_or_default();
    let mut out = Vec::new();
    for version in versions.iter().filter(|version| flag(version, "served")) {
        let name = version.get("name").and_then(Value::as_str).unwrap_or_default();
        let status = at(version, "/subresources/status").is_some();
        let pointer = |key: &str| {
            let path = at(version, &format!("/subresources/scale/{key}")).and_then(Value::as_str)?;
            Some(path.replace('.', "/"))
        };
        let scale = pointer("specReplicasPath")
            .zip(pointer("statusReplicasPath"))
            .map(|(spec, status)| ScalePaths { spec, status, selector: pointer("labelSelectorPath") });
        let selectable = version.get("selectableFields").and_then(Value::as_array);
        let selectable = selectable.into_iter().flatten().filter_map(|field| field.get("jsonPath")?.as_str());
        let schema = at(version, "/schema/openAPIV3Schema");
        let singular = text("/spec/names/singular");
        let kind = text("/spec/names/kind");
        out.push(Resource {
            group: group.clone(),
            version: name.to_owned(),
            singular: if singular.is_empty() { kind.to_lowercase() } else { singular },
            kind,
            plural: plural.clone(),
            short_names: strings("/spec/names/shortNames"),
            categories: strings("/spec/names/categories"),
            namespaced: text("/spec/scope") == "Namespaced",
            table: Arc::from(format!("{group}/{plural}")),
            stored_as: format!("{group}/{stored}"),
            status,
            scale,
            generation: Generation::All,
            selectable: selectable
                .map(|path| (path.trim_start_matches('.').to_owned(), path.replace('.', "/")))
                .collect(),
            node: schema.map_or(Node::Any, schema::custom),
            custom: true,
            nature: Nature::Stored,
            columns: PrinterColumn::of(version),
            definition: schema.map(Definition::of),
        });
    }
    out
}
