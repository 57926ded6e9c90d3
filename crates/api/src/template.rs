//! Parts of vanilla objects that travel unchanged: pod templates, job templates, strategies.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// Why a preserved object is not what it should be.
#[derive(Debug, thiserror::Error)]
#[error("{field} is not a valid {kind}: {path}: {source}")]
pub struct TemplateError {
    /// The field of the spec, such as `spec.template`.
    pub field: &'static str,
    /// The field in it that is wrong, with its whole path, such as `spec.template.spec.containers[0].env[0].value`.
    pub path: String,
    /// The type that was expected.
    pub kind: &'static str,
    /// What is wrong.
    #[source]
    pub source: serde_json::Error,
}

/// A pod template with every field kept as it was written, also those that are newer than Portolan.
///
/// It is not checked by the schema: a server-side dry run in a member checks it before anything is placed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PodTemplate(pub Value);

impl PodTemplate {
    /// The template as the Kubernetes type; fields that the type does not know are left out of it.
    pub fn to_typed(&self) -> Result<PodTemplateSpec, TemplateError> {
        typed(&self.0, "spec.template", "PodTemplateSpec")
    }

    /// The template's labels, empty when there are none.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let labels = self.0.pointer("/metadata/labels").and_then(Value::as_object);
        labels.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }
}

impl From<Value> for PodTemplate {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

impl JsonSchema for PodTemplate {
    fn schema_name() -> Cow<'static, str> {
        "PodTemplate".into()
    }

    /// Declares no more than what rules need to see; the rest is preserved.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "required": ["spec"],
            "properties": {
                "metadata": {
                    "description": "Labels and annotations of the pods.",
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {
                        "labels": {
                            "description": "The labels of the pods.",
                            "type": "object",
                            "maxProperties": 64,
                            "additionalProperties": { "type": "string", "maxLength": 63 },
                        },
                    },
                },
                "spec": {
                    "description": "The spec of the pods, with all fields of the Kubernetes version of the members.",
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                },
            },
        })
    }
}

/// An object whose fields are kept as they were written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PreservedObject(pub Value);

impl PreservedObject {
    /// The object as a Kubernetes type; `field` names it in the error.
    pub fn to_typed<T: DeserializeOwned>(
        &self,
        field: &'static str,
        kind: &'static str,
    ) -> Result<T, TemplateError> {
        typed(&self.0, field, kind)
    }
}

impl JsonSchema for PreservedObject {
    fn schema_name() -> Cow<'static, str> {
        "PreservedObject".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    }
}

fn typed<T: DeserializeOwned>(
    value: &Value,
    field: &'static str,
    kind: &'static str,
) -> Result<T, TemplateError> {
    serde_path_to_error::deserialize(value).map_err(|error| TemplateError {
        field,
        path: match error.path().iter().next() {
            Some(_) => format!("{field}.{}", error.path()),
            None => field.to_owned(),
        },
        kind,
        source: error.into_inner(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn typed_view_and_untouched_text() {
        let written = json!({
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": "i"}], "fieldOfTomorrow": 1},
        });
        let template = PodTemplate(written.clone());
        let pod = template.to_typed().unwrap();
        assert_eq!(pod.spec.unwrap().containers[0].name, "c");
        assert_eq!(template.labels().collect::<Vec<_>>(), [("app", "a")]);
        assert_eq!(serde_json::to_value(&template).unwrap(), written);
    }

    #[test]
    fn error_names_field_and_type() {
        let told = |template: Value| PodTemplate(template).to_typed().unwrap_err().to_string();
        let start = "spec.template is not a valid PodTemplateSpec: spec.template";
        let env = json!({"name": "c", "env": [{"name": "A", "value": 5}]});
        let error = told(json!({"spec": {"containers": [env]}}));
        let path = ".spec.containers[0].env[0].value: invalid type: integer `5`, expected a string";
        assert_eq!(error, format!("{start}{path}"));
        let error = told(json!({"spec": {"containers": 3}}));
        assert!(error.starts_with(&format!("{start}.spec.containers: ")), "{error}");
        let error = told(json!(3));
        assert!(error.starts_with(&format!("{start}: ")), "{error}");
    }
}
