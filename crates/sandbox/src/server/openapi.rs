//! OpenAPI v3: the structure of built-in kinds, and custom resources as their definitions have them.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::registry::{Registry, Resource};
use crate::schema;

/// Which documents there are.
pub(super) fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for row in registry.all() {
        let place = place(row);
        let link = json!({"serverRelativeURL": format!("/openapi/v3/{place}?hash={}", registry.version())});
        paths.insert(place, link);
    }
    json!({ "paths": paths })
}

fn place(row: &Resource) -> String {
    if row.group.is_empty() {
        format!("api/{}", row.version)
    } else {
        format!("apis/{}/{}", row.group, row.version)
    }
}

/// The document of one group and version.
pub(super) fn document(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let rows: Vec<_> = registry.all().filter(|row| row.group == group && row.version == version).collect();
    let place = place(rows.first()?);
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for row in rows {
        let kind = json!({"group": row.group, "version": row.version, "kind": row.kind});
        let name = match &row.definition {
            Some(definition) => {
                let reversed: Vec<&str> = row.group.split('.').rev().collect();
                let name = format!("{}.{}.{}", reversed.join("."), row.version, row.kind);
                let mut own = definition.schema().clone();
                for (field, node) in [
                    ("apiVersion", json!({"type": "string"})),
                    ("kind", json!({"type": "string"})),
                    ("metadata", schema::openapi::reference(schema::OBJECT_META)),
                ] {
                    own["properties"][field] = node;
                }
                schema::openapi::collect(schema::OBJECT_META, &mut schemas);
                schemas.insert(name.clone(), own);
                name
            }
            None => {
                let Some(name) = schema::openapi::type_name(&row.group, &row.version, &row.kind) else {
                    continue;
                };
                schema::openapi::collect(&name, &mut schemas);
                name
            }
        };
        if let Some(found) = schemas.get_mut(&name) {
            found["x-kubernetes-group-version-kind"] = json!([kind]);
        }
        let scope = if row.namespaced { "/namespaces/{namespace}" } else { "" };
        let answer = json!({"200": {"description": "OK", "content": {"application/json": {"schema": schema::openapi::reference(&name)}}}});
        let action = |verb: &str| json!({"x-kubernetes-action": verb, "x-kubernetes-group-version-kind": kind, "responses": answer});
        let base = format!("/{place}{scope}/{}", row.plural);
        paths.insert(base.clone(), json!({"get": action("list"), "post": action("post")}));
        // What kubectl looks for before it relies on the server's validation and dry run.
        let mut patch = action("patch");
        let known = ["dryRun", "fieldManager", "fieldValidation", "force"];
        let parameters = known.map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}));
        patch["parameters"] = json!(parameters);
        paths.insert(
            format!("{base}/{{name}}"),
            json!({"get": action("get"), "put": action("put"), "patch": patch, "delete": action("delete")}),
        );
    }
    let known: BTreeSet<&String> = schemas.keys().collect();
    debug_assert!(!known.is_empty(), "a document has types");
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.3"},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}
