//! What is particular to built-in kinds: defaults, preparation, validation.

mod csr;
mod defaults;
mod names;
mod pod_defaults;
mod prepare;
mod quota;
mod sets;
mod validate;

use crate::store::at;
use serde_json::Value;

pub(crate) use csr::{is_csr, prepare_csr_update, request_of, set_requester, strings, validate_csr_update};
pub(crate) use defaults::apply_defaults;
pub(crate) use names::label_value;
pub(crate) use prepare::{change_node_ports, prepare_create, prepare_update, release_address};
pub(crate) use sets::count_template;
pub(crate) use validate::{validate_create, validate_update};

/// True if the object has that condition with status `True`.
pub(crate) fn condition_is_true(object: &Value, kind: &str) -> bool {
    let conditions = at(object, "/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        condition.get("type").and_then(Value::as_str) == Some(kind)
            && condition.get("status").and_then(Value::as_str) == Some("True")
    })
}
