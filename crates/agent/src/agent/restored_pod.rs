//! The pod at the destination, made from the one at the source.

use super::movable::{RUNTIME_CLASS, why_not};
use crate::session::{HandsError, SessionInfo};
use k8s_openapi::api::core::v1::{Pod, PodReadinessGate};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use portolan_node::annotations::RESTORE;
use serde_json::{Value, json};

/// The condition of a restored pod that its readiness waits for: before the commit it stands still, and must get no traffic.
pub const COMMITTED: &str = "portolan.dev/committed";

/// With this policy an image is found by its name alone.
const NEVER: &str = "Never";

/// What the API server calls the volume with the token of a service account.
const TOKEN: &str = "kube-api-access-";

/// The migration that a pod was created for.
pub(super) fn restored_in(pod: &Pod) -> Option<&str> {
    pod.metadata.annotations.as_ref()?.get(RESTORE).map(String::as_str)
}

/// What is written into the status of a restored pod with this UID once it runs, which is at this time.
pub(super) fn committed_status(uid: &str, time: &str) -> Value {
    json!({
        // Another pod that has the name by now is left alone.
        "metadata": { "uid": uid },
        "status": { "conditions": [{
            "type": COMMITTED,
            "status": "True",
            "lastTransitionTime": time,
            "reason": "MigrationCommitted",
            "message": "the pod goes on here, and has left the cluster that it comes from",
        }] },
    })
}

/// The pod that waits on this node for the checkpoint of `source`. What the API server of the source had added is left out: that
/// of the destination adds its own.
pub(super) fn restored_pod(source: &Pod, session: &SessionInfo, node: &str) -> Result<Pod, HandsError> {
    let refused = |why: String| {
        HandsError::refusal(format!("pod {} cannot be moved while it runs: {why}", session.pod))
    };
    if let Some(why) = why_not(source) {
        return Err(refused(why));
    }
    let mut spec = source.spec.clone().ok_or_else(|| refused("it has no spec".to_owned()))?;
    if let Some(volumes) = &mut spec.volumes {
        volumes.retain(|volume| volume.projected.is_none() || !volume.name.starts_with(TOKEN));
    }
    for container in &mut spec.containers {
        if let Some(mounts) = &mut container.volume_mounts {
            mounts.retain(|mount| !mount.name.starts_with(TOKEN));
        }
        // The changes of its root are of this image and no other.
        if let Some(image) = by_digest(source, &container.name)
            && container.image_pull_policy.as_deref() != Some(NEVER)
        {
            container.image = Some(image);
        }
    }
    spec.node_name = Some(node.to_owned());
    spec.runtime_class_name = Some(RUNTIME_CLASS.to_owned());
    // They follow from classes, which are the destination's own.
    (spec.overhead, spec.priority, spec.preemption_policy) = (None, None, None);
    (spec.ephemeral_containers, spec.scheduling_gates) = (None, None);
    let gates = spec.readiness_gates.get_or_insert_default();
    if !gates.iter().any(|gate| gate.condition_type == COMMITTED) {
        gates.push(PodReadinessGate { condition_type: COMMITTED.to_owned() });
    }
    let mut annotations = source.metadata.annotations.clone().unwrap_or_default();
    annotations.insert(RESTORE.to_owned(), session.migration.clone());
    let metadata = ObjectMeta {
        namespace: Some(session.pod.namespace().to_owned()),
        name: Some(session.pod.name().to_owned()),
        labels: source.metadata.labels.clone(),
        annotations: Some(annotations),
        ..ObjectMeta::default()
    };
    Ok(Pod { metadata, spec: Some(spec), status: None })
}

/// The image that a container runs, by its digest, if a registry has it under that. One that was brought to its node otherwise is
/// known there by another digest, which says nothing elsewhere.
fn by_digest(pod: &Pod, container: &str) -> Option<String> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let id = &statuses.iter().find(|status| status.name == container)?.image_id;
    let image = id.split_once("://").map_or(id.as_str(), |(_, image)| image);
    let (name, digest) = image.split_once('@')?;
    (!name.is_empty() && digest.starts_with("sha256:")).then(|| image.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Pod as MovedPod;

    fn session() -> SessionInfo {
        let terms = json!({ "order": "Transactional", "timeout": "20s", "maxDowntime": "5s" });
        SessionInfo {
            pod: MovedPod::new("shop", "web-0", "4f1c").unwrap(),
            migration: "m".to_owned(),
            session: 7,
            terms: serde_json::from_value(terms).unwrap(),
            baseline: String::new(),
        }
    }

    fn source() -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "namespace": "shop", "name": "web-0", "uid": "4f1c", "resourceVersion": "12",
                "labels": { "app": "web" },
                "annotations": { "note": "mine", "portolan.dev/restore": "earlier" },
                "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "9d" }],
                "finalizers": ["example.com/mine"],
            },
            "spec": {
                "nodeName": "there",
                "priority": 0,
                "preemptionPolicy": "PreemptLowerPriority",
                "terminationGracePeriodSeconds": 5,
                "containers": [{
                    "name": "a",
                    "image": "web:1",
                    "volumeMounts": [
                        { "name": "shared", "mountPath": "/shared" },
                        { "name": "kube-api-access-x7f2p", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount" },
                    ],
                }],
                "volumes": [
                    { "name": "shared", "emptyDir": {} },
                    { "name": "kube-api-access-x7f2p", "projected": { "sources": [] } },
                ],
            },
            "status": { "phase": "Running" },
        })
    }

    #[test]
    fn what_the_user_wrote_is_kept_and_the_rest_is_the_destinations() {
        let source: Pod = serde_json::from_value(source()).unwrap();
        let pod = restored_pod(&source, &session(), "here").unwrap();
        assert_eq!(restored_in(&pod), Some("m"));
        let expected = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "namespace": "shop", "name": "web-0",
                "labels": { "app": "web" },
                "annotations": { "note": "mine", "portolan.dev/restore": "m" },
            },
            "spec": {
                "nodeName": "here",
                "runtimeClassName": "portolan-restore",
                "readinessGates": [{ "conditionType": "portolan.dev/committed" }],
                "terminationGracePeriodSeconds": 5,
                "containers": [{
                    "name": "a",
                    "image": "web:1",
                    "volumeMounts": [{ "name": "shared", "mountPath": "/shared" }],
                }],
                "volumes": [{ "name": "shared", "emptyDir": {} }],
            },
        });
        assert_eq!(serde_json::to_value(&pod).unwrap(), expected);
    }

    #[test]
    fn a_pod_that_moves_on_has_one_gate() {
        let source: Pod = serde_json::from_value(source()).unwrap();
        let first = restored_pod(&source, &session(), "here").unwrap();
        let second = restored_pod(&first, &session(), "there").unwrap();
        assert_eq!(second.spec.unwrap().readiness_gates, first.spec.unwrap().readiness_gates);
        let status = committed_status("4f1c", "1970-01-01T00:00:00Z");
        assert_eq!(status["status"]["conditions"][0]["lastTransitionTime"], "1970-01-01T00:00:00Z");
        assert_eq!(status["metadata"]["uid"], "4f1c");
    }

    #[test]
    fn a_pod_with_init_containers_is_refused() {
        let mut source = source();
        source["spec"]["initContainers"] = json!([{ "name": "first" }]);
        let source: Pod = serde_json::from_value(source).unwrap();
        let error = restored_pod(&source, &session(), "here").unwrap_err().to_string();
        assert!(error.contains("pod shop/web-0") && error.contains("init containers"), "{error}");
    }

    #[test]
    fn a_container_goes_on_with_the_image_that_it_runs() {
        let digest = format!("sha256:{}", "7".repeat(64));
        let of_registry = format!("docker.io/library/web@{digest}");
        for (image_id, policy, expected) in [
            (of_registry.clone(), "IfNotPresent", of_registry.as_str()),
            (format!("docker-pullable://{of_registry}"), "Always", of_registry.as_str()),
            (digest.clone(), "IfNotPresent", "web:1"),
            (String::new(), "IfNotPresent", "web:1"),
            (of_registry.clone(), "Never", "web:1"),
        ] {
            let mut source = source();
            source["spec"]["containers"][0]["imagePullPolicy"] = policy.into();
            source["status"]["containerStatuses"] = json!([{
                "name": "a", "ready": true, "restartCount": 0, "image": "web:1", "imageID": image_id,
            }]);
            let source: Pod = serde_json::from_value(source).unwrap();
            let pod = restored_pod(&source, &session(), "here").unwrap();
            assert_eq!(
                pod.spec.unwrap().containers[0].image.as_deref(),
                Some(expected),
                "{image_id} {policy}"
            );
        }
    }
}
