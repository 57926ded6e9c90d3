//! Fields of a manifest that its kind does not have, and the ones that were probably meant.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;
use std::fmt;

/// A field that the kind does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// Where it stands, such as `spec.location`.
    pub path: String,
    /// The field that was probably meant.
    pub meant: Option<String>,
}

impl fmt::Display for UnknownField {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "unknown field {}", self.path)?;
        match &self.meant {
            Some(meant) => write!(formatter, ": did you mean {meant}?"),
            None => Ok(()),
        }
    }
}

/// The fields of a manifest that its kind, by its definition, does not have. Beneath fields that are kept as they were
/// written, such as a template, anything goes.
#[must_use]
pub fn unknown_fields(definition: &CustomResourceDefinition, manifest: &Value) -> Vec<UnknownField> {
    let mut found = Vec::new();
    let schema = definition.spec.versions.first().and_then(|version| version.schema.as_ref());
    let Some(schema) = schema.and_then(|schema| schema.open_api_v3_schema.as_ref()) else { return found };
    for (name, value) in manifest.as_object().into_iter().flatten() {
        let part = schema.properties.as_ref().and_then(|properties| properties.get(name));
        match (name.as_str(), part) {
            ("apiVersion" | "kind" | "metadata" | "status", _) => {}
            (_, Some(part)) => search(part, value, name, &mut found),
            (_, None) => {
                found.push(UnknownField { path: name.clone(), meant: nearest(name, ["metadata", "spec"]) });
            }
        }
    }
    found
}

fn search(schema: &JSONSchemaProps, value: &Value, path: &str, found: &mut Vec<UnknownField>) {
    match value {
        Value::Object(fields) => {
            let properties = schema.properties.as_ref();
            let values = match &schema.additional_properties {
                Some(JSONSchemaPropsOrBool::Schema(values)) => Some(values.as_ref()),
                _ => None,
            };
            let open = schema.x_kubernetes_preserve_unknown_fields == Some(true)
                || matches!(schema.additional_properties, Some(JSONSchemaPropsOrBool::Bool(true)));
            for (name, value) in fields {
                let place = format!("{path}.{name}");
                match properties.and_then(|properties| properties.get(name)).or(values) {
                    Some(inner) => search(inner, value, &place, found),
                    None if open => {}
                    None => {
                        let known = properties.into_iter().flatten().map(|(name, _)| name.as_str());
                        found.push(UnknownField { path: place, meant: nearest(name, known) });
                    }
                }
            }
        }
        Value::Array(items) => {
            if let Some(JSONSchemaPropsOrArray::Schema(inner)) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    search(inner, item, &format!("{path}[{index}]"), found);
                }
            }
        }
        _ => {}
    }
}

/// The known name that is most like this one, if one is like it at all.
fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let lower = name.to_lowercase();
    let far = (name.chars().count() / 3).max(2);
    let distances = known.into_iter().map(|each| (distance(&lower, &each.to_lowercase()), each));
    let nearest = distances.min();
    nearest.filter(|(distance, _)| *distance <= far).map(|(_, each)| each.to_owned())
}

/// How many letters must be added, taken away or replaced to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, theirs) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *theirs);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MultiClusterDeployment;
    use kube::CustomResourceExt;
    use serde_json::json;

    #[test]
    fn a_mistyped_field_is_named_with_the_one_that_was_meant() {
        let manifest = json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "MultiClusterDeployment",
            "metadata": {"name": "web", "anything": 1},
            "spec": {
                "location": ["a"], "Replicas": 2, "weights": [{"cluster": "a", "weigth": 1}], "qqqqqqq": 1,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"spec": {"containers": [{"imagee": "app"}]}},
            },
            "sepc": {},
        });
        let texts: Vec<String> = unknown_fields(&MultiClusterDeployment::crd(), &manifest)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            texts,
            [
                "unknown field sepc: did you mean spec?",
                "unknown field spec.Replicas: did you mean replicas?",
                "unknown field spec.location: did you mean locations?",
                "unknown field spec.qqqqqqq",
                "unknown field spec.weights[0].weigth: did you mean weight?",
            ]
        );
    }
}
