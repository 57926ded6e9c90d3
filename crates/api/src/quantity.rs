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

/// Quantities of resources that can be shared: a ResourceQuota takes each of their names.
pub(crate) fn shared_quantities_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": quantity(),
        "x-kubernetes-validations": [{
            "rule": SHARED_NAMES,
            "message": "the names must be cpu, memory, pods, ephemeral-storage, hugepages-SIZE, or those of extended resources \
                        with their domain, such as nvidia.com/gpu",
        }],
    })
}

const SHARED_NAMES: &str = "self.all(name, name in ['cpu', 'memory', 'pods', 'ephemeral-storage'] || \
    name.matches('^hugepages-[0-9A-Za-z]+$') || (!name.contains('kubernetes.io/') && \
    name.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')))";

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
