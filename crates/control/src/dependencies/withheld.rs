//! What never leaves the hub, whoever refers to it.

use crate::names::{CLUSTER_LABEL, PROPAGATE_ANNOTATION};
use kube::ResourceExt;
use kube::api::DynamicObject;

/// Namespaces whose ConfigMaps and Secrets are the hub's own: among them the credentials of all members.
const OWN_NAMESPACES: [&str; 2] = ["portolan", "kube-system"];

/// Types of Secrets that are of use in the hub alone, and there to others than pods.
const TYPES: [(&str, &str); 3] = [
    ("kubernetes.io/service-account-token", "a token of a service account is of no use in another cluster"),
    ("bootstrap.kubernetes.io/token", "a bootstrap token lets its bearer join this cluster"),
    ("helm.sh/release.v1", "a Helm release holds all values of a chart, and no pod reads it"),
];

/// Why an object of this namespace is not propagated, if it is not.
pub(super) fn withheld(namespace: &str, source: &DynamicObject) -> Option<String> {
    if OWN_NAMESPACES.contains(&namespace) {
        return Some(format!("nothing of namespace {namespace} does"));
    }
    if source.labels().contains_key(CLUSTER_LABEL) {
        return Some(format!("it has label {CLUSTER_LABEL}: it is the credential of a cluster"));
    }
    if source.annotations().get(PROPAGATE_ANNOTATION).is_some_and(|value| value == "false") {
        return Some(format!("it has annotation {PROPAGATE_ANNOTATION}: \"false\""));
    }
    let type_ = source.data["type"].as_str().unwrap_or_default();
    let known = TYPES.iter().find(|(each, _)| *each == type_)?;
    Some(format!("its type is {type_}; {}", known.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn why(namespace: &str, more: Value) -> Option<String> {
        let mut secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": namespace}});
        for (field, value) in more.as_object().unwrap() {
            match field.as_str() {
                "type" => secret["type"] = value.clone(),
                field => secret["metadata"][field] = value.clone(),
            }
        }
        withheld(namespace, &serde_json::from_value(secret).unwrap())
    }

    #[test]
    fn credentials_of_the_hub_and_of_clusters_never_travel() {
        assert_eq!(why("shop", json!({"type": "Opaque"})), None);
        assert_eq!(why("shop", json!({"annotations": {PROPAGATE_ANNOTATION: "true"}})), None);
        for namespace in OWN_NAMESPACES {
            assert!(why(namespace, json!({})).unwrap().contains(namespace));
        }
        for (type_, _) in TYPES {
            assert!(why("shop", json!({ "type": type_ })).unwrap().contains(type_));
        }
        assert!(why("shop", json!({"labels": {CLUSTER_LABEL: "c2"}})).is_some());
        assert!(why("shop", json!({"annotations": {PROPAGATE_ANNOTATION: "false"}})).is_some());
    }
}
