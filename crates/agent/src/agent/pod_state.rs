//! What the hands need of a pod.

use crate::hands::PodState;
use k8s_openapi::api::core::v1::Pod;
use portolan_node::{Name, NameError};

/// Why containers wait that are being made.
const BEING_MADE: [&str; 2] = ["ContainerCreating", "PodInitializing"];

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
        containers: containers.collect::<Result<Vec<_>, _>>()?,
        volumes: volumes.collect::<Result<Vec<_>, _>>()?,
    })
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
