//! Admission: what stands between a valid object and the store, as in Kubernetes: LimitRanges, RuntimeClasses,
//! mutating hooks, denying policies, and quota last.

mod hooks;
mod limits;
mod overhead;
mod policies;
mod quota;

use serde_json::Value;

use crate::api::{Api, Writer};
use crate::error::ApiError;
use crate::registry::Resource;
use crate::store::{ObjectKey, at};

pub(crate) use hooks::Installed;
pub use hooks::{DenyingPolicy, MutatingHook};
pub(crate) use quota::status as quota_status;

impl Api {
    /// Changes a new object as LimitRanges, RuntimeClasses and hooks say.
    pub(crate) fn admit_new(&self, row: &Resource, object: &mut Value) -> Result<(), ApiError> {
        let is_pod = row.is("", "pods");
        if is_pod {
            limits::set_defaults(self, object);
            overhead::set(self, row, object)?;
        }
        // What a hook has changed is looked at again by those before it.
        if self.mutate(row, object) && is_pod {
            self.fill_in_admitted(row, object);
            limits::set_defaults(self, object);
        }
        Ok(())
    }

    /// Changes an object that is written anew as hooks say; pods are changed only when they are made.
    pub(crate) fn admit_change(&self, row: &Resource, object: &mut Value) {
        if !row.is("", "pods") && self.mutate(row, object) {
            self.fill_in_admitted(row, object);
        }
    }

    fn fill_in_admitted(&self, row: &Resource, object: &mut Value) {
        if row.definition.is_none() {
            crate::kinds::apply_defaults(row, object);
        }
    }

    /// Refuses a new object that LimitRanges, policies or quota do not allow.
    pub(crate) fn check_admission(
        &self,
        row: &Resource,
        object: &Value,
        writer: &Writer,
    ) -> Result<(), ApiError> {
        if row.is("", "pods") {
            limits::check(self, row, object)?;
        }
        self.check_policies(row, object)?;
        self.check_expressions(row, None, object, writer)?;
        quota::check(self, row, object)
    }

    /// The label of an object's namespace.
    fn namespace_label(&self, object: &Value, key: &str) -> Option<String> {
        let namespace = at(object, "/metadata/namespace").and_then(Value::as_str)?;
        let found = self.store.get("/namespaces", &ObjectKey::new("", namespace))?.value();
        found["metadata"]["labels"][key].as_str().map(str::to_owned)
    }
}

/// The name of an object, or what it is to be called.
fn name_of(object: &Value) -> &str {
    let name = |field: &str| at(object, field).and_then(Value::as_str).filter(|name| !name.is_empty());
    name("/metadata/name").or_else(|| name("/metadata/generateName")).unwrap_or_default()
}
