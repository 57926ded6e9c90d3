//! Reduces the OpenAPI v3 documents of an API server to the structure the sandbox needs: which fields a
//! type has, how its lists merge, what is required. Descriptions and paths are left out.
//!
//! `cargo xtask generate --kubernetes` runs it on DIR, which holds the documents (`/openapi/v3/...`) one a file.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use serde_json::{Map, Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).ok_or("usage: structure DIR")?;
    let mut definitions = BTreeMap::new();
    let mut files: Vec<_> = std::fs::read_dir(&dir)?.collect::<Result<_, _>>()?;
    files.sort_by_key(std::fs::DirEntry::file_name);
    for file in files {
        let document: Value = serde_json::from_slice(&std::fs::read(file.path())?)?;
        let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
        for (name, schema) in schemas.into_iter().flatten() {
            definitions.insert(name.clone(), schema.clone());
        }
    }
    let kinds = stable_kinds(&definitions);
    let mut types = BTreeMap::new();
    let mut open: BTreeSet<String> = kinds.values().cloned().collect();
    while let Some(name) = open.pop_first() {
        if types.contains_key(&name) {
            continue;
        }
        let schema = definitions.get(&name).ok_or_else(|| format!("no definition of {name}"))?;
        let mut found = BTreeSet::new();
        types.insert(name, node(schema, &mut found));
        open.extend(found.into_iter().filter(|name| !types.contains_key(name)));
    }
    println!("{}", serde_json::to_string(&json!({ "kinds": kinds, "types": types }))?);
    Ok(())
}

/// `group/version/Kind` to type name, for versions that are neither alpha nor beta.
fn stable_kinds(definitions: &BTreeMap<String, Value>) -> BTreeMap<String, String> {
    let mut kinds = BTreeMap::new();
    for (name, schema) in definitions {
        let gvks = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
        // Types of every group (DeleteOptions, WatchEvent) are no resources.
        for gvk in gvks.into_iter().flatten().take(if gvks.is_some_and(|g| g.len() > 1) { 0 } else { 1 }) {
            let part = |key: &str| gvk.get(key).and_then(Value::as_str).unwrap_or_default();
            let (version, kind) = (part("version"), part("kind"));
            if !version.contains("alpha") && !version.contains("beta") && !kind.ends_with("List") {
                kinds.insert(format!("{}/{version}/{kind}", part("group")), name.clone());
            }
        }
    }
    kinds
}

fn node(schema: &Value, found: &mut BTreeSet<String>) -> Value {
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    if let Some(reference) = reference(schema) {
        found.insert(reference.to_owned());
        let mut out = Map::from_iter([("ref".to_owned(), json!(reference))]);
        merge_hints(schema, &mut out);
        // A field that is no pointer in Go: it is always there.
        if schema.get("default") == Some(&json!({})) {
            out.insert("always".to_owned(), json!(true));
        }
        return if out.len() == 1 { json!(format!("#{reference}")) } else { Value::Object(out) };
    }
    if schema.get("x-kubernetes-int-or-string").is_some() || text("format") == Some("int-or-string") {
        return json!("int-or-string");
    }
    if schema.get("oneOf").is_some() && text("type").is_none() {
        return json!("int-or-string");
    }
    match text("type") {
        Some("array") => {
            let mut out = Map::new();
            let items = schema.get("items").cloned().unwrap_or(Value::Null);
            out.insert("items".to_owned(), node(&items, found));
            if let Some(relation) = text("x-kubernetes-list-type") {
                out.insert("list".to_owned(), json!(relation));
            }
            if let Some(keys) = schema.get("x-kubernetes-list-map-keys") {
                out.insert("keys".to_owned(), keys.clone());
            }
            merge_hints(schema, &mut out);
            Value::Object(out)
        }
        Some("object") | None if schema.get("properties").is_some() => {
            let fields: Map<String, Value> = schema
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .map(|(name, field)| (name.clone(), node(field, found)))
                .collect();
            let mut out = Map::from_iter([("fields".to_owned(), Value::Object(fields))]);
            if let Some(required) = schema.get("required") {
                out.insert("required".to_owned(), required.clone());
            }
            if text("x-kubernetes-map-type") == Some("atomic") {
                out.insert("atomic".to_owned(), json!(true));
            }
            Value::Object(out)
        }
        Some("object") => match schema.get("additionalProperties") {
            Some(element) if element.is_object() => {
                let mut out = Map::from_iter([("values".to_owned(), node(element, found))]);
                if text("x-kubernetes-map-type") == Some("atomic") {
                    out.insert("atomic".to_owned(), json!(true));
                }
                Value::Object(out)
            }
            _ => json!("any"),
        },
        Some(scalar) => {
            let kind = match (scalar, text("format")) {
                ("string", Some("date-time")) => "date-time",
                ("string", Some("byte")) => "byte",
                ("integer", Some("int32")) => "int32",
                (other, _) => other,
            };
            match schema.get("default").filter(|default| !default.is_object() && *default != &json!("")) {
                Some(default) => json!({ "scalar": kind, "default": default }),
                None => json!(kind),
            }
        }
        None => json!("any"),
    }
}

fn reference(schema: &Value) -> Option<&str> {
    let direct = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref"))?;
    direct.as_str()?.strip_prefix("#/components/schemas/")
}

fn merge_hints(schema: &Value, out: &mut Map<String, Value>) {
    for (hint, short) in
        [("x-kubernetes-patch-merge-key", "mergeKey"), ("x-kubernetes-patch-strategy", "strategy")]
    {
        if let Some(value) = schema.get(hint) {
            out.insert(short.to_owned(), value.clone());
        }
    }
}
