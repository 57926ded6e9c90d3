//! What a pod template refers to.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// The kinds that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DependencyKind {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
}

/// A ConfigMap or Secret by name, in the workload's namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// Which kind.
    pub kind: DependencyKind,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            DependencyKind::ConfigMap => write!(f, "ConfigMap {}", self.name),
            DependencyKind::Secret => write!(f, "Secret {}", self.name),
        }
    }
}

/// What a template refers to, and whether its pods also start without it.
pub type References = BTreeMap<Reference, bool>;

/// All that a pod template refers to: in the environment, in volumes (projected ones too), and for pulling images.
#[must_use]
pub fn references(template: &Value) -> References {
    let mut found = References::new();
    let spec = &template["spec"];
    for secret in items(&spec["imagePullSecrets"]) {
        // Kubernetes pulls without it, if it can.
        note(&mut found, DependencyKind::Secret, &secret["name"], true);
    }
    for containers in ["containers", "initContainers", "ephemeralContainers"] {
        for container in items(&spec[containers]) {
            for variable in items(&container["env"]) {
                let from = &variable["valueFrom"];
                refer(&mut found, &from["configMapKeyRef"], &from["secretKeyRef"], "name");
            }
            for source in items(&container["envFrom"]) {
                refer(&mut found, &source["configMapRef"], &source["secretRef"], "name");
            }
        }
    }
    for volume in items(&spec["volumes"]) {
        refer(&mut found, &volume["configMap"], &volume["secret"], "secretName");
        for source in items(&volume["projected"]["sources"]) {
            refer(&mut found, &source["configMap"], &source["secret"], "name");
        }
        note(&mut found, DependencyKind::Secret, &volume["csi"]["nodePublishSecretRef"]["name"], false);
    }
    found
}

fn refer(found: &mut References, config_map: &Value, secret: &Value, secret_name: &str) {
    let optional = |reference: &Value| reference["optional"].as_bool().unwrap_or(false);
    note(found, DependencyKind::ConfigMap, &config_map["name"], optional(config_map));
    note(found, DependencyKind::Secret, &secret[secret_name], optional(secret));
}

fn note(found: &mut References, kind: DependencyKind, name: &Value, optional: bool) {
    if let Some(name) = name.as_str().filter(|name| !name.is_empty()) {
        let reference = Reference { kind, name: name.to_owned() };
        // What is needed in one place is needed.
        let entry = found.entry(reference).or_insert(optional);
        *entry = *entry && optional;
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_what_a_pod_uses_wherever_it_stands() {
        let template = json!({"spec": {
            "imagePullSecrets": [{"name": "pull"}],
            "initContainers": [{"name": "i", "envFrom": [{"secretRef": {"name": "init", "optional": true}}]}],
            "containers": [{
                "name": "c",
                "env": [
                    {"name": "A", "value": "plain"},
                    {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "env", "key": "k"}}},
                    {"name": "C", "valueFrom": {"secretKeyRef": {"name": "key", "key": "k", "optional": true}}},
                ],
                "envFrom": [{"configMapRef": {"name": "all"}}],
            }],
            "volumes": [
                {"name": "v", "configMap": {"name": "files"}},
                {"name": "w", "secret": {"secretName": "key"}},
                {"name": "x", "projected": {"sources": [
                    {"configMap": {"name": "part"}}, {"secret": {"name": "mixed", "optional": true}},
                    {"serviceAccountToken": {"path": "t"}},
                ]}},
            ],
        }});
        let found: Vec<_> = references(&template)
            .iter()
            .map(|(reference, optional)| format!("{reference} {optional}"))
            .collect();
        assert_eq!(
            found,
            [
                "ConfigMap all false",
                "ConfigMap env false",
                "ConfigMap files false",
                "ConfigMap part false",
                "Secret init true",
                "Secret key false",
                "Secret mixed true",
                "Secret pull true",
            ]
        );
        assert!(references(&json!({"spec": {"containers": "odd"}})).is_empty());
    }
}
