//! RuntimeClasses: what a pod's sandbox costs on top of its containers.

use serde_json::Value;

use super::name_of;
use crate::api::Api;
use crate::error::ApiError;
use crate::registry::Resource;
use crate::store::{ObjectKey, at};

/// Sets the overhead that the pod's RuntimeClass tells.
pub(super) fn set(api: &Api, row: &Resource, pod: &mut Value) -> Result<(), ApiError> {
    let refuse = |pod: &Value, why: &str| Err(ApiError::forbidden(row.about(name_of(pod)), why));
    let class = at(pod, "/spec/runtimeClassName").and_then(Value::as_str).unwrap_or_default().to_owned();
    let overhead = match class.as_str() {
        "" => None,
        name => match api.store.get("node.k8s.io/runtimeclasses", &ObjectKey::new("", name)) {
            Some(class) => at(&class.value(), "/overhead/podFixed").cloned(),
            None => return refuse(pod, &format!("pod rejected: RuntimeClass {name:?} not found")),
        },
    };
    match (overhead, at(pod, "/spec/overhead")) {
        (Some(fixed), None) => pod["spec"]["overhead"] = fixed,
        (Some(fixed), Some(said)) if fixed != *said => {
            return refuse(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
        }
        (None, Some(_)) => {
            return refuse(
                pod,
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            );
        }
        _ => {}
    }
    Ok(())
}
