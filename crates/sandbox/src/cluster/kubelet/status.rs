//! What a kubelet writes into the status of its pods.

use serde_json::{Value, json};

use super::super::{set_pod_condition, text};
use crate::store::at;

/// The node has seen the pod and makes its containers.
pub(super) fn creating(pod: &mut Value, host: &str, time: &Value) {
    let waiting = |reason: &'static str| {
        move |spec: &Value, _: usize| container(spec, "", json!({"waiting": {"reason": reason}}), false)
    };
    let has_initial = at(pod, "/spec/initContainers").is_some();
    let reason = if has_initial { "PodInitializing" } else { "ContainerCreating" };
    let main = containers(pod, "containers", waiting(reason));
    let initial = containers(pod, "initContainers", waiting("PodInitializing"));
    let unready = unready_message(pod);
    observe_generation(pod);
    let status = &mut pod["status"];
    status["phase"] = json!("Pending");
    status["startTime"] = time.clone();
    status["hostIP"] = json!(host);
    status["hostIPs"] = json!([{"ip": host}]);
    status["containerStatuses"] = json!(main);
    if !initial.is_empty() {
        status["initContainerStatuses"] = json!(initial);
    }
    condition(pod, "PodScheduled", "True", "", "", time);
    condition(pod, "PodReadyToStartContainers", "False", "", "", time);
    let initialised = if has_initial { "False" } else { "True" };
    condition(pod, "Initialized", initialised, "", "", time);
    for kind in ["Ready", "ContainersReady"] {
        condition(pod, kind, "False", "ContainersNotReady", &unready, time);
    }
}

/// The containers run; whether they are ready is another thing.
pub(super) fn running(pod: &mut Value, address: &str, id: &str, is_ready: bool, time: &Value) {
    let main = containers(pod, "containers", |spec, index| {
        container(spec, &format!("{id}-{index}"), json!({"running": {"startedAt": time}}), is_ready)
    });
    let initial = containers(pod, "initContainers", |spec, index| {
        let id = format!("{id}-init-{index}");
        let side_car = text(spec, "/restartPolicy") == "Always";
        let state = if side_car {
            json!({"running": {"startedAt": time}})
        } else {
            json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": time, "finishedAt": time, "containerID": format!("sandbox://{id}")}})
        };
        let mut status = container(spec, &id, state, true);
        status["started"] = json!(side_car);
        status
    });
    let unready = unready_message(pod);
    observe_generation(pod);
    let status = &mut pod["status"];
    status["phase"] = json!("Running");
    status["podIP"] = json!(address);
    status["podIPs"] = json!([{"ip": address}]);
    status["containerStatuses"] = json!(main);
    if !initial.is_empty() {
        status["initContainerStatuses"] = json!(initial);
    }
    for kind in ["PodReadyToStartContainers", "Initialized"] {
        condition(pod, kind, "True", "", "", time);
    }
    for kind in ["Ready", "ContainersReady"] {
        if is_ready {
            condition(pod, kind, "True", "", "", time)
        } else {
            condition(pod, kind, "False", "ContainersNotReady", &unready, time)
        }
    }
}

/// The containers are ready to serve.
pub(super) fn ready(pod: &mut Value, time: &Value) {
    let status = &mut pod["status"];
    for container in status["containerStatuses"].as_array_mut().into_iter().flatten() {
        container["ready"] = json!(true);
    }
    for kind in ["Ready", "ContainersReady"] {
        condition(pod, kind, "True", "", "", time);
    }
}

/// The containers have ended and run again at once.
pub(super) fn restarted(pod: &mut Value, code: i32, time: &Value) {
    for container in pod["status"]["containerStatuses"].as_array_mut().into_iter().flatten() {
        container["restartCount"] = json!(container["restartCount"].as_i64().unwrap_or(0) + 1);
        container["lastState"] = terminated(container, code, time);
        container["state"] = json!({"running": {"startedAt": time}});
    }
}

/// The containers have ended for good.
pub(super) fn ended(pod: &mut Value, code: i32, time: &Value) {
    observe_generation(pod);
    let status = &mut pod["status"];
    for container in status["containerStatuses"].as_array_mut().into_iter().flatten() {
        container["state"] = terminated(container, code, time);
        container["ready"] = json!(false);
        container["started"] = json!(false);
    }
    let (phase, reason) = if code == 0 { ("Succeeded", "PodCompleted") } else { ("Failed", "PodFailed") };
    status["phase"] = json!(phase);
    condition(pod, "PodReadyToStartContainers", "False", "", "", time);
    if code == 0 {
        condition(pod, "Initialized", "True", reason, "", time);
    }
    for kind in ["Ready", "ContainersReady"] {
        condition(pod, kind, "False", reason, "", time);
    }
}

/// True if every container says so of itself.
pub(super) fn containers_are_ready(pod: &Value) -> bool {
    let containers = at(pod, "/status/containerStatuses").and_then(Value::as_array);
    containers.is_some_and(|all| all.iter().all(|container| container["ready"] == json!(true)))
}

fn containers(pod: &Value, list: &str, make: impl Fn(&Value, usize) -> Value) -> Vec<Value> {
    let specs = at(pod, &format!("/spec/{list}")).and_then(Value::as_array);
    specs.into_iter().flatten().enumerate().map(|(index, spec)| make(spec, index)).collect()
}

fn container(spec: &Value, id: &str, state: Value, ready: bool) -> Value {
    let running = state.get("running").is_some();
    let mut out = json!({
        "name": spec["name"], "image": spec["image"], "imageID": "", "ready": ready, "started": running,
        "restartCount": 0, "state": state, "lastState": {},
    });
    if !id.is_empty() {
        out["containerID"] = json!(format!("sandbox://{id}"));
        out["imageID"] = json!(format!("sandbox://{}", text(spec, "/image")));
    }
    out
}

fn terminated(container: &Value, code: i32, time: &Value) -> Value {
    let started = at(container, "/state/running/startedAt").unwrap_or(time);
    json!({"terminated": {
        "exitCode": code, "reason": if code == 0 { "Completed" } else { "Error" },
        "startedAt": started, "finishedAt": time, "containerID": container["containerID"],
    }})
}

fn unready_message(pod: &Value) -> String {
    let names = containers(pod, "containers", |spec, _| spec["name"].clone());
    let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
    format!("containers with unready status: [{}]", names.join(" "))
}

fn condition(pod: &mut Value, kind: &str, state: &str, reason: &str, message: &str, time: &Value) {
    let mut condition = json!({"type": kind, "status": state, "lastProbeTime": null});
    for (field, value) in [("reason", reason), ("message", message)] {
        if !value.is_empty() {
            condition[field] = json!(value);
        }
    }
    set_pod_condition(pod, condition, time);
}

/// Notes which generation of the pod the kubelet goes by.
fn observe_generation(pod: &mut Value) {
    if let Some(generation) = at(pod, "/metadata/generation").cloned() {
        pod["status"]["observedGeneration"] = generation;
    }
}
