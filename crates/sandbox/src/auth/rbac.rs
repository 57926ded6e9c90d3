//! Roles and bindings.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use serde_json::Value;

use super::{Attributes, User};
use crate::api::Api;
use crate::error::ApiError;
use crate::store::{ObjectKey, at};

const CLUSTER_BINDINGS: &str = "rbac.authorization.k8s.io/clusterrolebindings";
const BINDINGS: &str = "rbac.authorization.k8s.io/rolebindings";
const CLUSTER_ROLES: &str = "rbac.authorization.k8s.io/clusterroles";
const ROLES: &str = "rbac.authorization.k8s.io/roles";

/// So many answers are kept; nobody has as many users in as many namespaces.
const KEPT: usize = 4096;

/// The rules that hold for users, until a role or a binding changes.
#[derive(Debug, Default)]
pub(crate) struct KnownRules {
    /// The revision of the last change of a role or a binding that they are of.
    revision: u64,
    by_user: BTreeMap<(String, Vec<String>, String), Arc<[Value]>>,
}

impl Api {
    /// Whether a role lets the user do it.
    pub(crate) fn may(&self, user: &User, wanted: &Attributes) -> bool {
        user.is_master() || self.rules_of(user, &wanted.namespace).iter().any(|rule| allows(rule, wanted))
    }

    /// Refuses what no role allows.
    pub(crate) fn authorise(&self, user: &User, wanted: &Attributes) -> Result<(), ApiError> {
        if self.may(user, wanted) { Ok(()) } else { Err(wanted.forbidden(&user.name)) }
    }

    /// All rules that hold for a user in a namespace (or cluster-wide, if it is empty).
    pub(crate) fn rules_of(&self, user: &User, namespace: &str) -> Arc<[Value]> {
        let tables = [CLUSTER_BINDINGS, BINDINGS, CLUSTER_ROLES, ROLES];
        let revision = tables.into_iter().map(|table| self.store.changed(table)).max().unwrap_or_default();
        let mut known = self.known_rules.lock().unwrap_or_else(PoisonError::into_inner);
        if known.revision != revision || known.by_user.len() >= KEPT {
            *known = KnownRules { revision, ..KnownRules::default() };
        }
        let of = (user.name.clone(), user.groups.clone(), namespace.to_owned());
        Arc::clone(known.by_user.entry(of).or_insert_with(|| self.collect_rules(user, namespace).into()))
    }

    fn collect_rules(&self, user: &User, namespace: &str) -> Vec<Value> {
        let mut rules = Vec::new();
        for binding in self.store.scan(CLUSTER_BINDINGS, None, None) {
            let binding = binding.value();
            if bound(&binding, user, "") {
                rules.extend(self.rules_of_role(&binding, ""));
            }
        }
        if !namespace.is_empty() {
            for binding in self.store.scan(BINDINGS, Some(namespace), None) {
                let binding = binding.value();
                if bound(&binding, user, namespace) {
                    rules.extend(self.rules_of_role(&binding, namespace));
                }
            }
        }
        rules
    }

    /// The rules of the role that a binding names.
    pub(crate) fn rules_of_role(&self, binding: &Value, namespace: &str) -> Vec<Value> {
        let text = |pointer: &str| at(binding, pointer).and_then(Value::as_str).unwrap_or_default();
        let (table, namespace) = match text("/roleRef/kind") {
            "ClusterRole" => (CLUSTER_ROLES, ""),
            _ => (ROLES, namespace),
        };
        let role = self.store.get(table, &ObjectKey::new(namespace, text("/roleRef/name")));
        let role = role.map(|role| role.value()).unwrap_or_default();
        role.get("rules").and_then(Value::as_array).cloned().unwrap_or_default()
    }

    /// Nobody gives away rights that they do not have.
    pub(crate) fn check_escalation(
        &self,
        user: &User,
        rules: &[Value],
        namespace: &str,
    ) -> Result<(), String> {
        if user.is_master() {
            return Ok(());
        }
        let own = self.rules_of(user, namespace);
        let missing = rules.iter().find(|rule| !covered(rule, &own));
        missing.map_or(Ok(()), |rule| {
            Err(format!(
                "user {:?} (groups={:?}) is attempting to grant RBAC permissions not currently held:\n{rule}",
                user.name, user.groups
            ))
        })
    }
}

fn bound(binding: &Value, user: &User, namespace: &str) -> bool {
    let subjects = binding.get("subjects").and_then(Value::as_array);
    subjects.into_iter().flatten().any(|subject| {
        let text = |key: &str| subject.get(key).and_then(Value::as_str).unwrap_or_default();
        match text("kind") {
            "User" => text("name") == user.name,
            "Group" => user.groups.iter().any(|group| group == text("name")),
            "ServiceAccount" => {
                let home = if text("namespace").is_empty() { namespace } else { text("namespace") };
                user.name == format!("system:serviceaccount:{home}:{}", text("name"))
            }
            _ => false,
        }
    })
}

fn has(rule: &Value, key: &str, wanted: &str) -> bool {
    let listed = rule.get(key).and_then(Value::as_array);
    listed.into_iter().flatten().filter_map(Value::as_str).any(|found| found == wanted || found == "*")
}

/// Whether one rule covers one request.
pub(super) fn allows(rule: &Value, wanted: &Attributes) -> bool {
    if !has(rule, "verbs", &wanted.verb) {
        return false;
    }
    if let Some(path) = &wanted.path {
        let listed = rule.get("nonResourceURLs").and_then(Value::as_array);
        return listed.into_iter().flatten().filter_map(Value::as_str).any(|allowed| {
            match allowed.strip_suffix('*') {
                Some(prefix) => path.starts_with(prefix),
                None => allowed == path,
            }
        });
    }
    let full = wanted.full_resource();
    let resource = has(rule, "resources", &full)
        || !wanted.subresource.is_empty() && has(rule, "resources", &format!("*/{}", wanted.subresource));
    let names = rule.get("resourceNames").and_then(Value::as_array).filter(|names| !names.is_empty());
    has(rule, "apiGroups", &wanted.group)
        && resource
        && names.is_none_or(|names| names.iter().any(|name| name.as_str() == Some(&wanted.name)))
}

/// Whether every part of a rule is covered by some other rule.
fn covered(rule: &Value, own: &[Value]) -> bool {
    let list = |key: &str| -> Vec<String> {
        let items = rule.get(key).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let paths = list("nonResourceURLs");
    let names = match list("resourceNames") {
        names if names.is_empty() => vec![String::new()],
        names => names,
    };
    list("verbs").iter().all(|verb| {
        paths.iter().all(|path| {
            let wanted = Attributes { verb: verb.clone(), path: Some(path.clone()), ..Attributes::default() };
            own.iter().any(|rule| allows(rule, &wanted))
        }) && list("apiGroups").iter().all(|group| {
            list("resources").iter().all(|resource| {
                let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
                names.iter().all(|name| {
                    let wanted = Attributes {
                        verb: verb.clone(),
                        group: group.clone(),
                        resource: resource.to_owned(),
                        subresource: subresource.to_owned(),
                        name: name.clone(),
                        ..Attributes::default()
                    };
                    own.iter().any(|rule| allows(rule, &wanted))
                })
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn on(verb: &str, resource: &str, name: &str) -> Attributes {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        Attributes {
            verb: verb.into(),
            resource: resource.into(),
            subresource: subresource.into(),
            name: name.into(),
            ..Attributes::default()
        }
    }

    #[test]
    fn rules_cover_what_they_say_and_no_more() {
        let rule = json!({"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]});
        assert!(allows(&rule, &on("get", "pods", "x")));
        assert!(allows(&rule, &on("get", "pods/log", "x")));
        assert!(!allows(&rule, &on("get", "pods/exec", "x")));
        assert!(!allows(&rule, &on("delete", "pods", "x")));
        assert!(!allows(&rule, &on("get", "secrets", "x")));
        let named =
            json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "resourceNames": ["only"]});
        assert!(allows(&named, &on("delete", "pods", "only")));
        assert!(!allows(&named, &on("list", "pods", "")));
        let wider = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "delete"]});
        assert!(!covered(&wider, std::slice::from_ref(&rule)));
        assert!(covered(&rule, &[json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]})]));
    }
}
