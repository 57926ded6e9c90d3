//! What the hands need of a pod.

use super::restored_pod::COMMITTED;
use crate::hands::PodState;
use k8s_openapi::api::core::v1::Pod;
use portolan_node::{Name, NameError};

/// Why containers wait that are being made.
const BEING_MADE: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// Linux has no longer hostnames.
const LONGEST_HOSTNAME: usize = 63;

/// Reads a pod of the API server.
pub(super) fn state(pod: &Pod) -> Result<PodState, NameError> {
    let spec = pod.spec.as_ref();
    let containers = spec.into_iter().flat_map(|spec| &spec.containers);
    let containers = containers.map(|container| Name::new("container", &container.name));
    let volumes = spec.and_then(|spec| spec.volumes.as_ref()).into_iter().flatten();
    let volumes = volumes.filter(|volume| volume.empty_dir.is_some());
    let volumes = volumes.map(|volume| Name::new("volume", &volume.name));
    Ok(PodState {
        uid: pod.metadata.uid.clone().unwrap_or_default(),
        terminating: pod.metadata.deletion_timestamp.is_some(),
        failure: failure(pod),
        committed: committed(pod),
        hostname: hostname(pod),
        containers: containers.collect::<Result<Vec<_>, _>>()?,
        volumes: volumes.collect::<Result<Vec<_>, _>>()?,
    })
}

/// The hostname that a kubelet gives to the containers of a pod; none for a name of a domain.
fn hostname(pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    if spec.set_hostname_as_fqdn == Some(true) {
        return None;
    }
    let named = spec.hostname.as_ref().filter(|name| !name.is_empty());
    let name: String = named.or(pod.metadata.name.as_ref())?.chars().take(LONGEST_HOSTNAME).collect();
    Some(name.trim_end_matches(['-', '.']).to_owned())
}

/// Whether the readiness gate of a restored pod is open. A pod without the gate has nothing to wait for.
fn committed(pod: &Pod) -> bool {
    let gates = pod.spec.as_ref().and_then(|spec| spec.readiness_gates.as_ref());
    if !gates.into_iter().flatten().any(|gate| gate.condition_type == COMMITTED) {
        return true;
    }
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == COMMITTED && condition.status == "True")
}

fn failure(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    if status.phase.as_deref() == Some("Failed") {
        return Some(told(status.reason.as_deref().unwrap_or("Failed"), status.message.as_deref()));
    }
    status.container_statuses.iter().flatten().find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting.reason.as_deref().filter(|reason| !BEING_MADE.contains(reason))?;
        Some(format!("container {}: {}", container.name, told(reason, waiting.message.as_deref())))
    })
}

fn told(reason: &str, message: Option<&str>) -> String {
    match message {
        Some(message) if !message.is_empty() => format!("{reason}: {message}"),
        _ => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(status: Value) -> Pod {
        let pod = json!({
            "metadata": { "name": "web-0", "uid": "4f1c" },
            "spec": {
                "containers": [{ "name": "a" }, { "name": "b" }],
                "volumes": [
                    { "name": "shared", "emptyDir": {} },
                    { "name": "settings", "configMap": { "name": "web" } },
                ],
            },
            "status": status,
        });
        serde_json::from_value(pod).unwrap()
    }

    fn waiting(reason: &str, message: &str) -> Value {
        let started = json!({
            "name": "a", "ready": true, "restartCount": 0, "image": "i", "imageID": "", "state": { "running": {} },
        });
        let waits = json!({
            "name": "b", "ready": false, "restartCount": 0, "image": "i", "imageID": "",
            "state": { "waiting": { "reason": reason, "message": message } },
        });
        json!({ "phase": "Pending", "containerStatuses": [started, waits] })
    }

    #[test]
    fn containers_and_empty_dirs_are_read() {
        let state = state(&pod(json!({}))).unwrap();
        let names = |all: &[Name]| all.iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&state.containers), ["a", "b"]);
        assert_eq!(names(&state.volumes), ["shared"]);
        assert_eq!((state.uid.as_str(), state.terminating, state.failure), ("4f1c", false, None));
    }

    #[test]
    fn a_pod_that_is_deleted_is_terminating() {
        let mut deleted = pod(json!({}));
        deleted.metadata.deletion_timestamp = serde_json::from_value(json!("2026-11-19T12:00:00Z")).unwrap();
        assert!(state(&deleted).unwrap().terminating);
    }

    #[test]
    fn a_hostname_is_the_one_that_a_kubelet_gives() {
        let long = format!("{}-b", "a".repeat(62));
        for (metadata, spec, expected) in [
            (json!({ "name": "web-0" }), json!({}), Some("web-0".to_owned())),
            (json!({ "name": "web-0" }), json!({ "hostname": "db" }), Some("db".to_owned())),
            (json!({ "name": "web-0" }), json!({ "setHostnameAsFQDN": true }), None),
            (json!({ "name": long }), json!({}), Some("a".repeat(62))),
        ] {
            let mut spec = spec;
            spec["containers"] = json!([]);
            let pod = serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap();
            assert_eq!(hostname(&pod), expected);
        }
    }

    #[test]
    fn a_pod_with_the_gate_is_committed_once_its_condition_says_so() {
        let mut gated = pod(json!({}));
        assert!(state(&gated).unwrap().committed, "it waits for nothing");
        let gates = json!([{ "conditionType": "other" }, { "conditionType": "portolan.dev/committed" }]);
        gated.spec.as_mut().unwrap().readiness_gates = serde_json::from_value(gates).unwrap();
        assert!(!state(&gated).unwrap().committed);
        for (status, expected) in [("False", false), ("True", true)] {
            let conditions = json!([
                { "type": "other", "status": "True" },
                { "type": "portolan.dev/committed", "status": status },
            ]);
            gated.status.as_mut().unwrap().conditions = serde_json::from_value(conditions).unwrap();
            assert_eq!(state(&gated).unwrap().committed, expected);
        }
    }

    #[test]
    fn only_what_does_not_pass_is_a_failure() {
        for reason in BEING_MADE {
            assert_eq!(state(&pod(waiting(reason, ""))).unwrap().failure, None);
        }
        let failure = state(&pod(waiting("CreateContainerError", "no room"))).unwrap().failure;
        assert_eq!(failure.as_deref(), Some("container b: CreateContainerError: no room"));
        let refused =
            json!({ "phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough" });
        let failure = state(&pod(refused)).unwrap().failure;
        assert_eq!(failure.as_deref(), Some("OutOfcpu: Node didn't have enough"));
        assert_eq!(state(&pod(json!({ "phase": "Failed" }))).unwrap().failure.as_deref(), Some("Failed"));
    }
}
