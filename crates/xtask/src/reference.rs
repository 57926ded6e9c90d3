//! The reference of the custom resources, from their schemas.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use portolan_api::is_served;
use std::fmt::Write;

/// The page: every kind with its fields, types, defaults and rules.
pub(crate) fn page(crds: &[CustomResourceDefinition]) -> String {
    let mut text = String::from(
        "# Custom resources\n\n\
         This page is written by `cargo xtask generate` from the types. `kubectl explain` shows the same.\n\n\
         | kind | status |\n|---|---|\n",
    );
    for crd in crds {
        let kind = &crd.spec.names.kind;
        let status = if is_served(crd) { "served" } else { "experimental: a schema without a controller" };
        let _ = writeln!(text, "| [{kind}](#{}) | {status} |", kind.to_lowercase());
    }
    text.push_str(
        "\n`portolan peer` and `portolan crds` install the served kinds only; `portolan crds --experimental` prints all. \
         An object of an experimental kind is stored, and nothing happens.\n",
    );
    for crd in crds {
        kind(&mut text, crd);
    }
    text
}

fn kind(text: &mut String, crd: &CustomResourceDefinition) {
    let names = &crd.spec.names;
    let Some(version) = crd.spec.versions.first() else { return };
    let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
    let Some(schema) = schema else { return };
    let short = names.short_names.clone().unwrap_or_default().join(", ");
    let _ = writeln!(text, "\n## {}\n\n{}\n", names.kind, schema.description.as_deref().unwrap_or_default());
    if !is_served(crd) {
        let _ = writeln!(text, "**Experimental: no controller serves this kind yet.**\n");
    }
    let _ = writeln!(
        text,
        "`{}/{}`, {} scope, short name `{short}`.\n",
        crd.spec.group,
        version.name,
        crd.spec.scope.to_lowercase()
    );
    rules(text, "", schema);
    for part in ["spec", "status"] {
        let Some(schema) = schema.properties.as_ref().and_then(|properties| properties.get(part)) else {
            continue;
        };
        let _ = writeln!(text, "| field of {part} | type | meaning |\n|---|---|---|");
        fields(text, "", schema);
        text.push('\n');
        rules(text, part, schema);
    }
}

/// One row a field, depth first.
fn fields(text: &mut String, path: &str, schema: &JSONSchemaProps) {
    for (name, field) in schema.properties.iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let required = schema.required.iter().flatten().any(|each| each == name);
        let (type_, inner) = described(field);
        let mut meaning =
            field.description.clone().unwrap_or_default().replace('\n', " ").replace('|', "\\|");
        if let Some(default) = &field.default {
            let _ = write!(meaning, " Default: `{}`.", default.0);
        }
        if required {
            meaning.push_str(" Required.");
        }
        let _ = writeln!(text, "| `{path}` | {type_} | {} |", meaning.trim());
        if let Some((suffix, inner)) = inner {
            fields(text, &format!("{path}{suffix}"), inner);
        }
    }
}

/// The type in words, and the schema of what is inside.
fn described(field: &JSONSchemaProps) -> (String, Option<(&'static str, &JSONSchemaProps)>) {
    if field.x_kubernetes_int_or_string == Some(true) {
        return ("integer or string".to_owned(), None);
    }
    let values: Vec<_> = field
        .enum_
        .iter()
        .flatten()
        .map(|value| format!("`{}`", value.0.to_string().trim_matches('"')))
        .collect();
    if !values.is_empty() {
        return (values.join(", "), None);
    }
    match (field.type_.as_deref().unwrap_or("any"), &field.items, &field.additional_properties) {
        ("array", Some(JSONSchemaPropsOrArray::Schema(items)), _) => {
            (format!("list of {}", described(items).0), Some(("[]", items.as_ref())))
        }
        ("object", _, Some(JSONSchemaPropsOrBool::Schema(values))) => {
            (format!("map to {}", described(values).0), Some((".*", values.as_ref())))
        }
        (name, _, _) => (name.to_owned(), Some(("", field))),
    }
}

/// The rules that stand at a schema and in it.
fn rules(text: &mut String, path: &str, schema: &JSONSchemaProps) {
    let mut found = Vec::new();
    collect(&mut found, path, schema, path.is_empty());
    if !found.is_empty() {
        text.push_str("Rules:\n\n");
        for (path, message) in found {
            let _ = writeln!(
                text,
                "- {}{message}",
                if path.is_empty() { String::new() } else { format!("`{path}`: ") }
            );
        }
        text.push('\n');
    }
}

fn collect(found: &mut Vec<(String, String)>, path: &str, schema: &JSONSchemaProps, shallow: bool) {
    for rule in schema.x_kubernetes_validations.iter().flatten() {
        found.push((path.to_owned(), rule.message.clone().unwrap_or_else(|| rule.rule.clone())));
    }
    if shallow {
        return;
    }
    for (name, field) in schema.properties.iter().flatten() {
        collect(found, &format!("{path}.{name}"), field, false);
        match (&field.items, &field.additional_properties) {
            (Some(JSONSchemaPropsOrArray::Schema(inner)), _) => {
                collect(found, &format!("{path}.{name}[]"), inner, false)
            }
            (_, Some(JSONSchemaPropsOrBool::Schema(inner))) => {
                collect(found, &format!("{path}.{name}.*"), inner, false)
            }
            _ => {}
        }
    }
}
