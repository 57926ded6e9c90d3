//! Schemas of resource quantities.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// A single quantity, such as `500m` or `2Gi`.
pub(crate) fn quantity_schema(_: &mut SchemaGenerator) -> Schema {
    Schema::try_from(quantity()).unwrap_or_default()
}

/// Quantities by the name of the resource.
pub(crate) fn quantities_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "maxProperties": 64, "additionalProperties": quantity() })
}

fn quantity() -> Value {
    json!({
        "x-kubernetes-int-or-string": true,
        "maxLength": 40,
        "x-kubernetes-validations": [{
            "rule": "isQuantity(string(self)) && !quantity(string(self)).isLessThan(quantity('0'))",
            "message": "must be a quantity that is not negative, such as 500m, 2 or 1Gi",
        }],
    })
}
