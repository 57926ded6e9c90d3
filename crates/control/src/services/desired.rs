//! What a member is to hold of a service, and whether it does.

use super::facts::ServiceFacts;
use crate::copies::{Desired, Ownership, propagated_annotations};
use crate::names::EPOCH_ANNOTATION;
use portolan_api::MultiClusterService;
use portolan_runtime::Key;
use serde_json::{Value, json};

/// Builds the Service for the members: the fields as they were written, marked as ours. What is left open, such as
/// addresses and node ports, the member assigns and keeps.
pub(super) fn desired(service: &MultiClusterService, key: &Key, hub: &str, epoch: Option<i64>) -> Desired {
    let meta = &service.metadata;
    // The spec of a MultiClusterService is a part of that of a Service, field by field.
    let spec = serde_json::to_value(&service.spec).unwrap_or_default();
    let mut object = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": meta.labels.clone().unwrap_or_default(),
            "annotations": propagated_annotations(meta),
        },
        "spec": spec,
    });
    let workload = meta.uid.as_deref().unwrap_or_default();
    let digest = Ownership { hub, workload, owner: key, epoch }.mark(&mut object);
    Desired { object, template: digest.clone(), digest }
}

/// Whether the Service in a member still has everything that was applied, beside what the member added.
pub(super) fn holds(copy: &ServiceFacts, desired: &Desired) -> bool {
    let wanted = &desired.object;
    let has = |field: &str, actual: &std::collections::BTreeMap<String, String>| {
        let texts = wanted["metadata"][field].as_object().into_iter().flatten();
        // Another leader applied the same.
        let mut texts = texts.into_iter().filter(|(name, _)| *name != EPOCH_ANNOTATION);
        texts.all(|(name, value)| actual.get(name).map(String::as_str) == value.as_str())
    };
    copy.meta.digest.as_deref() == Some(&desired.digest)
        && has("labels", &copy.labels)
        && has("annotations", &copy.annotations)
        // A further label in the selector would let pods go unserved.
        && copy.spec["selector"] == wanted["spec"]["selector"]
        && includes(&copy.spec, &wanted["spec"])
}

/// What is wanted of the Service in a member that no Service lets be changed: the field, what is there, what would help.
pub(super) fn unchangeable(copy: &ServiceFacts, desired: &Desired) -> Option<String> {
    let address = |spec: &Value| spec["clusterIP"].as_str().map(str::to_owned);
    let (there, wanted) = (address(&copy.spec), address(&desired.object["spec"]));
    let headless = |address: &Option<String>| address.as_deref() == Some("None");
    if headless(&there) == headless(&wanted) {
        return None;
    }
    let wanted = if headless(&wanted) { "None" } else { "an address of the cluster" };
    Some(format!(
        "spec.clusterIP of a Service cannot be changed: it is {} there, and {wanted} is asked for. Delete the Service \
         there and it is made anew at once (until then its clients find nothing), or set spec.clusterIP back",
        there.as_deref().unwrap_or("not set")
    ))
}

/// Whether `actual` has every field of `wanted`. The ports of a list are told apart by number and protocol.
fn includes(actual: &Value, wanted: &Value) -> bool {
    match (actual, wanted) {
        (Value::Object(actual), Value::Object(wanted)) => {
            wanted.iter().all(|(name, value)| actual.get(name).is_some_and(|found| includes(found, value)))
        }
        (Value::Array(actual), Value::Array(wanted)) => {
            wanted.iter().all(|value| actual.iter().any(|found| includes(found, value)))
        }
        (actual, wanted) => actual == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{DIGEST_ANNOTATION, HUB_LABEL, OWNER_ANNOTATION, WORKLOAD_LABEL};
    use k8s_openapi::api::core::v1::Service;

    fn service() -> MultiClusterService {
        serde_json::from_value(json!({
            "apiVersion": "portolan.dev/v1alpha1",
            "kind": "MultiClusterService",
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "u1", "labels": {"team": "a"},
                "annotations": {"io.cilium/global-service": "true",
                    "kubectl.kubernetes.io/last-applied-configuration": "{}"},
            },
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]},
        }))
        .unwrap()
    }

    fn made() -> Desired {
        desired(&service(), &Key::new("shop", "web"), "hub1", None)
    }

    /// The Service as a member has it: with defaults and what it assigned.
    fn in_member() -> Value {
        let mut object = made().object;
        object["spec"]["clusterIP"] = json!("10.0.0.7");
        object["spec"]["clusterIPs"] = json!(["10.0.0.7"]);
        object["spec"]["ports"][0]["nodePort"] = json!(30001);
        object
    }

    fn facts(object: Value) -> ServiceFacts {
        ServiceFacts::of(&serde_json::from_value::<Service>(object).unwrap())
    }

    #[test]
    fn carries_annotations_and_ports_but_not_what_kubectl_keeps_for_itself() {
        let made = made();
        let meta = &made.object["metadata"];
        assert_eq!(
            meta["annotations"],
            json!({
                "io.cilium/global-service": "true", OWNER_ANNOTATION: "shop/web", DIGEST_ANNOTATION: made.digest,
            })
        );
        assert_eq!(meta["labels"], json!({"team": "a", WORKLOAD_LABEL: "u1", HUB_LABEL: "hub1"}));
        let spec = &made.object["spec"];
        assert_eq!(spec["ports"], json!([{"port": 80, "protocol": "TCP", "targetPort": "http"}]));
        assert_eq!((&spec["type"], spec.get("clusterIP")), (&json!("ClusterIP"), None));
    }

    #[test]
    fn what_the_member_assigns_is_no_drift_and_what_somebody_changes_is() {
        assert!(holds(&facts(in_member()), &made()));
        let changes: [fn(&mut Value); 5] = [
            |object| object["spec"]["ports"][0]["targetPort"] = json!(8080),
            |object| object["spec"]["selector"]["version"] = json!("2"),
            |object| object["spec"]["type"] = json!("NodePort"),
            |object| object["metadata"]["annotations"]["io.cilium/global-service"] = json!("false"),
            |object| object["metadata"]["labels"] = json!({}),
        ];
        for change in changes {
            let mut object = in_member();
            change(&mut object);
            assert!(!holds(&facts(object.clone()), &made()), "{object}");
        }
    }
}
