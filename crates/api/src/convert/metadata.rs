//! Names, labels and annotations.

use serde_json::{Map, Value};

use super::{
    fields::Field,
    place::{ConvertError, Place, Problem, Warning},
};

/// What an API server fills in by itself.
const SERVER_SET: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The metadata of the converted object.
pub(super) fn convert(
    metadata: Option<Field<'_>>,
    document: &Place,
    namespaced: bool,
    warnings: &mut Vec<Warning>,
) -> Result<Value, ConvertError> {
    let missing = |field: &str, place: &Place| ConvertError {
        place: place.clone(),
        problem: Problem::MissingField { field: field.to_owned() },
    };
    let Some(metadata) = metadata else { return Err(missing("metadata", document)) };
    let mut fields = metadata.fields()?;
    let mut converted = Map::new();
    for name in ["name", "generateName"] {
        if let Some(field) = fields.take(name) {
            converted.insert(name.to_owned(), field.text()?.into());
        }
    }
    if converted.is_empty() {
        return Err(missing("name", &metadata.place));
    }
    if let Some(namespace) = fields.take("namespace") {
        let text = namespace.text()?;
        if namespaced {
            converted.insert("namespace".to_owned(), text.into());
        } else {
            warn(
                warnings,
                namespace,
                format!("the namespace {text} is left out: the kind lives in no namespace"),
            );
        }
    }
    for name in ["labels", "annotations"] {
        let Some(field) = fields.take(name) else { continue };
        let mut texts = texts(&field)?;
        if texts.remove(LAST_APPLIED).is_some() {
            let message = format!("the annotation {LAST_APPLIED} is left out: kubectl apply writes it anew");
            warn(warnings, field, message);
        }
        if !texts.is_empty() {
            converted.insert(name.to_owned(), Value::Object(texts));
        }
    }
    for name in SERVER_SET {
        fields.take(name);
    }
    for name in ["finalizers", "ownerReferences"] {
        if let Some(field) = fields.take(name) {
            let message = format!("{name} are left out: they belong to the object in its old cluster");
            warn(warnings, field, message);
        }
    }
    fields.finish()?;
    Ok(Value::Object(converted))
}

fn texts(field: &Field<'_>) -> Result<Map<String, Value>, ConvertError> {
    match field.node.to_value() {
        Value::Object(object) => {
            let wrong = object.iter().find(|(_, value)| !value.is_string());
            match wrong {
                Some((key, value)) => Err(ConvertError {
                    place: field.place.clone(),
                    problem: Problem::WrongValue {
                        value: value.to_string(),
                        expected: format!("the value of {key} must be a text; put it in quotes"),
                    },
                }),
                None => Ok(object),
            }
        }
        _ => Err(super::fields::wrong_type(field.place.clone(), "a mapping", field.node)),
    }
}

fn warn(warnings: &mut Vec<Warning>, field: Field<'_>, message: String) {
    warnings.push(Warning { place: field.place, message });
}
