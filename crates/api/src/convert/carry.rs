//! Carrying fields over unchanged, checked against our schema: a field that our kind does not have is an error at
//! its position, not something the API server would prune in silence.

use kube::{CustomResourceExt, Resource};
use serde_json::{Map, Value, json};

use super::{
    fields::{Field, Fields, wrong_type},
    node::{Content, Node},
    place::{ConvertError, Place, Problem},
};

/// The object that is being made.
pub(super) struct Target {
    kind: String,
    namespaced: bool,
    schema: Value,
    spec: Map<String, Value>,
}

impl Target {
    /// An object of kind `K` with an empty spec.
    pub(super) fn new<K: CustomResourceExt + Resource<DynamicType = ()>>() -> Self {
        let crd = K::crd();
        let schema = crd
            .spec
            .versions
            .into_iter()
            .next()
            .and_then(|version| version.schema)
            .and_then(|validation| validation.open_api_v3_schema)
            .and_then(|schema| schema.properties)
            .and_then(|mut properties| properties.remove("spec"))
            .and_then(|spec| serde_json::to_value(spec).ok())
            .unwrap_or_default();
        Self {
            kind: crd.spec.names.kind,
            namespaced: crd.spec.scope == "Namespaced",
            schema,
            spec: Map::new(),
        }
    }

    /// Whether the kind lives in namespaces.
    pub(super) fn namespaced(&self) -> bool {
        self.namespaced
    }

    /// Carries those of the fields over that are there.
    pub(super) fn carry(&mut self, fields: &mut Fields<'_>, names: &[&str]) -> Result<(), ConvertError> {
        for name in names {
            if let Some(field) = fields.take(name) {
                self.carry_field(name, &field)?;
            }
        }
        Ok(())
    }

    /// Carries a field over that must be there.
    pub(super) fn carry_required(&mut self, fields: &mut Fields<'_>, name: &str) -> Result<(), ConvertError> {
        let field = fields.require(name)?;
        self.carry_field(name, &field)
    }

    /// Carries one field over under its own name.
    pub(super) fn carry_field(&mut self, name: &str, field: &Field<'_>) -> Result<(), ConvertError> {
        let value = carried(field.node, &self.schema["properties"][name], &field.place)?;
        self.spec.insert(name.to_owned(), value);
        Ok(())
    }

    /// Sets a field to a value of our own.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        self.spec.insert(name.to_owned(), value);
    }

    /// The finished object.
    pub(super) fn into_object(self, metadata: Value) -> Value {
        json!({
            "apiVersion": crate::API_VERSION,
            "kind": self.kind,
            "metadata": metadata,
            "spec": self.spec,
        })
    }
}

fn carried(node: &Node, schema: &Value, place: &Place) -> Result<Value, ConvertError> {
    let expected = |text| wrong_type(place.clone(), text, node);
    match (schema["type"].as_str(), &node.content) {
        (Some("object"), Content::Mapping(_)) => object(node, schema, place),
        (Some("object"), _) => Err(expected("a mapping")),
        (Some("array"), Content::Sequence(items)) => items
            .iter()
            .enumerate()
            .map(|(index, item)| carried(item, &schema["items"], &place.item(index, item.position)))
            .collect(),
        (Some("array"), _) => Err(expected("a list")),
        (Some("boolean"), Content::Boolean(value)) => Ok(Value::Bool(*value)),
        (Some("boolean"), _) => Err(expected("true or false")),
        (Some("integer"), Content::Number(value)) if !value.is_f64() => Ok(Value::Number(value.clone())),
        (Some("integer"), _) => Err(expected("a whole number")),
        (Some("string"), Content::Text(text)) => text_value(text, schema, place),
        (Some("string"), _) => Err(expected("a text; put it in quotes")),
        (None, Content::Text(_)) => Ok(node.to_value()),
        (None, Content::Number(value)) if !value.is_f64() => Ok(Value::Number(value.clone())),
        _ => Err(expected("a whole number or a text")),
    }
}

fn text_value(text: &str, schema: &Value, place: &Place) -> Result<Value, ConvertError> {
    let allowed: Vec<&str> =
        schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !allowed.is_empty() && !allowed.contains(&text) {
        let expected = format!("it must be one of {}", allowed.join(", "));
        let problem = Problem::WrongValue { value: text.to_owned(), expected };
        return Err(ConvertError { place: place.clone(), problem });
    }
    Ok(Value::String(text.to_owned()))
}

fn object(node: &Node, schema: &Value, place: &Place) -> Result<Value, ConvertError> {
    let Content::Mapping(entries) = &node.content else {
        return Err(wrong_type(place.clone(), "a mapping", node));
    };
    let properties = schema["properties"].as_object();
    let preserved = schema["x-kubernetes-preserve-unknown-fields"] == true;
    let mut object = Map::new();
    for (key, value) in entries {
        let place = place.field(&key.name, key.position);
        let declared =
            properties.and_then(|known| known.get(&key.name)).or_else(|| schema.get("additionalProperties"));
        let carried = match declared {
            Some(_) if value.content == Content::Null => continue,
            Some(declared) => carried(value, declared, &place)?,
            None if preserved => value.to_value(),
            None => {
                let known = properties.map(|known| known.keys().cloned().collect()).unwrap_or_default();
                return Err(ConvertError { place, problem: Problem::UnknownField { known } });
            }
        };
        object.insert(key.name.clone(), carried);
    }
    Ok(Value::Object(object))
}
