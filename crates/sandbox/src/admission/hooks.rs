//! Mutating hooks and denying policies, standing for webhooks and admission policies.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::policies::{Expressions, denial};
use crate::api::Api;
use crate::error::ApiError;
use crate::registry::Resource;

type Change = Arc<dyn Fn(&mut Value) + Send + Sync>;
type Test = Arc<dyn Fn(&Value) -> bool + Send + Sync>;

/// Changes objects of a kind on their way in.
#[derive(Clone)]
pub struct MutatingHook {
    name: String,
    kind: String,
    /// Label and value of the namespaces it is for.
    namespaces: Option<(String, String)>,
    change: Change,
}

impl MutatingHook {
    /// Changes every object of a kind, such as `Pod`.
    pub fn new(
        name: impl Into<String>,
        kind: impl Into<String>,
        change: impl Fn(&mut Value) + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), kind: kind.into(), namespaces: None, change: Arc::new(change) }
    }

    /// Adds a container to every pod that has none of that name, as service meshes do.
    pub fn inject_container(name: impl Into<String>, container: Value) -> Self {
        Self::new(name, "Pod", move |pod| {
            let Some(containers) = pod.pointer_mut("/spec/containers").and_then(Value::as_array_mut) else {
                return;
            };
            if containers.iter().all(|each| each["name"] != container["name"]) {
                containers.push(container.clone());
            }
        })
    }

    /// Adds a variable to the environment of every container that has none of that name.
    pub fn inject_env(name: impl Into<String>, variable: &str, value: &str) -> Self {
        let variable = json!({"name": variable, "value": value});
        Self::new(name, "Pod", move |pod| {
            let containers = pod.pointer_mut("/spec/containers").and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                match container.get_mut("env").and_then(Value::as_array_mut) {
                    Some(all) if all.iter().any(|each| each["name"] == variable["name"]) => {}
                    Some(all) => all.push(variable.clone()),
                    None => container["env"] = json!([variable]),
                }
            }
        })
    }

    /// Only in namespaces with this label.
    #[must_use]
    pub fn in_namespaces(mut self, label: impl Into<String>, value: impl Into<String>) -> Self {
        self.namespaces = Some((label.into(), value.into()));
        self
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Denies objects of some kinds.
#[derive(Clone)]
pub struct DenyingPolicy {
    name: String,
    kinds: Vec<String>,
    code: u16,
    message: String,
    test: Option<Test>,
}

impl DenyingPolicy {
    /// Denies every new or changed object of these kinds with a message, and with 422 as ValidatingAdmissionPolicies
    /// do if nothing else is said.
    pub fn new(name: impl Into<String>, kinds: &[&str], message: impl Into<String>) -> Self {
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        Self { name: name.into(), kinds, code: 422, message: message.into(), test: None }
    }

    /// Denies with 403.
    #[must_use]
    pub fn forbidden(mut self) -> Self {
        self.code = 403;
        self
    }

    /// Denies only objects that fulfil this.
    #[must_use]
    pub fn when(mut self, test: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        self.test = Some(Arc::new(test));
        self
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// What is installed in a cluster, by name.
#[derive(Default)]
pub(crate) struct Installed {
    pub(crate) hooks: BTreeMap<String, MutatingHook>,
    pub(crate) policies: BTreeMap<String, DenyingPolicy>,
    /// Expressions of ValidatingAdmissionPolicies.
    pub(crate) expressions: Expressions,
}

impl Api {
    /// Runs the hooks for an object; answers whether one changed it.
    pub(super) fn mutate(&self, row: &Resource, object: &mut Value) -> bool {
        let mut changed = false;
        for hook in self.admission.hooks.values().filter(|hook| hook.kind == row.kind) {
            let here = hook.namespaces.as_ref().is_none_or(|(label, value)| {
                self.namespace_label(object, label).as_deref() == Some(value.as_str())
            });
            if here {
                let before = object.clone();
                (hook.change)(object);
                changed |= before != *object;
            }
        }
        changed
    }

    /// Refuses what a policy denies.
    pub(crate) fn check_policies(&self, row: &Resource, object: &Value) -> Result<(), ApiError> {
        let denies = |policy: &&DenyingPolicy| {
            policy.kinds.contains(&row.kind) && policy.test.as_ref().is_none_or(|test| test(object))
        };
        let Some(policy) = self.admission.policies.values().find(denies) else { return Ok(()) };
        let mut denied = denial(row, object, (&policy.name, &policy.name), &policy.message);
        if policy.code != 422 {
            (denied.code, denied.reason) = (403, "Forbidden");
        }
        Err(denied)
    }
}
