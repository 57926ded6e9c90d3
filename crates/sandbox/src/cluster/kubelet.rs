//! Simulated nodes: pods start, run, end and stop after their times.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::{Value, json};

use super::queue::{Item, Queue};
use super::view::View;
use super::{Controller, Seen, deleting, set_condition, text};
use crate::api::Api;
use crate::error::ApiError;
use crate::store::{EventKind, ObjectKey};
use crate::verbs::{DeleteOptions, Part};
use crate::world::ClusterConfig;

/// The first address of pods: 10.244.0.0.
const FIRST_ADDRESS: u32 = 0x0af4_0000;

/// What a pod's annotations can say about its life on a simulated node.
mod annotation {
    /// How long from binding to ready (`2s`).
    pub(super) const START_UP: &str = "sandbox.portolan.dev/start-up";
    /// How long it runs (`10s`).
    pub(super) const RUN_TIME: &str = "sandbox.portolan.dev/run-time";
    /// How it ends.
    pub(super) const EXIT_CODE: &str = "sandbox.portolan.dev/exit-code";
}

/// What a pod does next, and when, on the tokio clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Start,
    End,
    Stop,
}

/// All kubelets of a cluster.
pub(super) struct Kubelet {
    start_up: Duration,
    shut_down: Duration,
    run_time: Duration,
    steps: BTreeMap<ObjectKey, (Step, tokio::time::Instant)>,
    addresses: u32,
}

impl Kubelet {
    pub(super) fn new(config: &ClusterConfig) -> Self {
        Self {
            start_up: config.start_up,
            shut_down: config.shut_down,
            run_time: config.run_time,
            steps: BTreeMap::new(),
            addresses: 0,
        }
    }

    /// The next thing that happens to a pod.
    fn next_step(&self, pod: &Value) -> Option<(Step, Duration)> {
        if deleting(pod) {
            let grace =
                pod.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_u64).unwrap_or(0);
            return Some((Step::Stop, self.shut_down.min(Duration::from_secs(grace))));
        }
        match text(pod, "/status/phase") {
            "Pending" | "" => {
                Some((Step::Start, duration(pod, annotation::START_UP).unwrap_or(self.start_up)))
            }
            "Running" => {
                let given = duration(pod, annotation::RUN_TIME);
                let always = text(pod, "/spec/restartPolicy") == "Always";
                let time = given.or(if always { None } else { Some(self.run_time) })?;
                Some((Step::End, time))
            }
            _ => None,
        }
    }
}

impl Controller for Kubelet {
    fn name(&self) -> &'static str {
        "kubelet"
    }

    fn observe(&mut self, seen: &Seen, view: &View, queue: &mut Queue) {
        if &*seen.table == "/nodes" && seen.kind != EventKind::Deleted {
            // Pods may have been bound to a node before it was there, or while it was silent.
            for (key, pod) in view.pods.iter().filter(|(_, pod)| pod.node == seen.key.name) {
                if !pod.over {
                    queue.add(Item::new("/pods", key));
                }
            }
        }
        if &*seen.table != "/pods" {
            return;
        }
        if seen.kind == EventKind::Deleted {
            self.steps.remove(&seen.key);
        } else if !text(&seen.object, "/spec/nodeName").is_empty() {
            queue.add(Item::new("/pods", &seen.key));
        }
    }

    fn reconcile(&mut self, item: &Item, api: &mut Api, view: &View) -> Result<Option<Duration>, ApiError> {
        let Some(found) = api.store.get("/pods", &item.key) else { return Ok(None) };
        let pod = found.value();
        let node = text(&pod, "/spec/nodeName");
        let simulated =
            view.nodes.get(node).is_some_and(|node| node.simulated) && !api.silent_nodes.contains_key(node);
        let Some((step, after)) = self.next_step(&pod).filter(|_| simulated) else {
            self.steps.remove(&item.key);
            return Ok(None);
        };
        let now = tokio::time::Instant::now();
        let due = match self.steps.get(&item.key) {
            Some((planned, due)) if *planned == step => *due,
            _ => now + after,
        };
        if due > now {
            self.steps.insert(item.key.clone(), (step, due));
            return Ok(Some(due - now));
        }
        self.steps.remove(&item.key);
        match step {
            Step::Start => self.start(api, &item.key, view)?,
            Step::End => self.end(api, &item.key, &pod)?,
            Step::Stop => {
                let row = api.row("", "pods")?;
                // Whoever holds the pod with a finalizer sees how it ended.
                let running = matches!(text(&pod, "/status/phase"), "Running" | "Pending");
                if running && pod.pointer("/metadata/finalizers").is_some() {
                    api.modify(&row, &item.key, Part::Status, self.name(), |object| {
                        object["status"]["phase"] = json!("Failed");
                    })?;
                }
                let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
                api.remove_object(&row, &item.key, &options)?;
            }
        }
        Ok(None)
    }
}

impl Kubelet {
    fn start(&mut self, api: &mut Api, key: &ObjectKey, view: &View) -> Result<(), ApiError> {
        let row = api.row("", "pods")?;
        let time = api.time();
        self.addresses = self.addresses.wrapping_add(1) % 0xffff;
        let address = Ipv4Addr::from(FIRST_ADDRESS + self.addresses).to_string();
        let id = api.new_uid();
        api.modify(&row, key, Part::Status, self.name(), |object| {
            let node = view.nodes.get(text(object, "/spec/nodeName"));
            let host = node
                .map(|node| text(&node.object, "/status/addresses/0/address").to_owned())
                .unwrap_or_default();
            let containers = |list: &str, finished: bool| -> Vec<Value> {
                let specs = object.pointer(&format!("/spec/{list}")).and_then(Value::as_array);
                specs
                    .into_iter()
                    .flatten()
                    .enumerate()
                    .map(|(index, spec)| {
                        container_status(spec, &format!("sandbox://{id}-{list}-{index}"), &time, finished)
                    })
                    .collect()
            };
            let (main, initial) = (containers("containers", false), containers("initContainers", true));
            let status = &mut object["status"];
            status["phase"] = json!("Running");
            status["startTime"] = time.clone();
            status["hostIP"] = json!(host);
            status["hostIPs"] = json!([{"ip": host}]);
            status["podIP"] = json!(address);
            status["podIPs"] = json!([{"ip": address}]);
            status["containerStatuses"] = json!(main);
            if !initial.is_empty() {
                status["initContainerStatuses"] = json!(initial);
            }
            for kind in ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"] {
                set_condition(status, json!({"type": kind, "status": "True", "lastProbeTime": null}), &time);
            }
        })?;
        Ok(())
    }

    fn end(&mut self, api: &mut Api, key: &ObjectKey, pod: &Value) -> Result<(), ApiError> {
        let row = api.row("", "pods")?;
        let time = api.time();
        let annotations = pod.pointer("/metadata/annotations");
        let code = annotations.and_then(|all| all.get(annotation::EXIT_CODE)).and_then(Value::as_str);
        let code: i64 = code.and_then(|code| code.parse().ok()).unwrap_or(0);
        let policy = text(pod, "/spec/restartPolicy");
        let again = policy == "Always" || policy == "OnFailure" && code != 0;
        api.modify(&row, key, Part::Status, self.name(), |object| {
            let status = &mut object["status"];
            for container in status["containerStatuses"].as_array_mut().into_iter().flatten() {
                let ended = json!({"terminated": {
                    "exitCode": code, "reason": if code == 0 { "Completed" } else { "Error" },
                    "startedAt": container.pointer("/state/running/startedAt").cloned().unwrap_or_else(|| time.clone()),
                    "finishedAt": time, "containerID": container["containerID"],
                }});
                if again {
                    container["restartCount"] = json!(container["restartCount"].as_i64().unwrap_or(0) + 1);
                    container["lastState"] = ended;
                    container["state"] = json!({"running": {"startedAt": time}});
                } else {
                    container["state"] = ended;
                    container["ready"] = json!(false);
                    container["started"] = json!(false);
                }
            }
            if !again {
                status["phase"] = json!(if code == 0 { "Succeeded" } else { "Failed" });
                for kind in ["Ready", "ContainersReady"] {
                    let reason = if code == 0 { "PodCompleted" } else { "PodFailed" };
                    let condition = json!({"type": kind, "status": "False", "reason": reason, "lastProbeTime": null});
                    set_condition(status, condition, &time);
                }
            }
        })?;
        Ok(())
    }
}

fn container_status(spec: &Value, id: &str, time: &Value, finished: bool) -> Value {
    let sidecar = text(spec, "/restartPolicy") == "Always";
    let state = if finished && !sidecar {
        json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": time, "finishedAt": time, "containerID": id}})
    } else {
        json!({"running": {"startedAt": time}})
    };
    json!({
        "name": spec["name"], "image": spec["image"], "imageID": format!("sandbox://{}", text(spec, "/image")),
        "containerID": id, "ready": true, "started": !finished || sidecar, "restartCount": 0,
        "state": state, "lastState": {},
    })
}

fn duration(pod: &Value, annotation: &str) -> Option<Duration> {
    let written = pod.pointer("/metadata/annotations")?.get(annotation)?.as_str()?;
    let signed: jiff::SignedDuration = written.parse().ok()?;
    signed.try_into().ok()
}
