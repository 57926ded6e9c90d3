//! The life of nodes: silence is noticed, tainted, and in the end pods are moved; pods of absent nodes are collected.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::queue::{Item, Queue};
use super::view::View;
use super::{Controller, Seen, set_condition, set_pod_condition, text};
use crate::api::{Api, Writer};
use crate::error::ApiError;
use crate::store::{EventKind, ObjectKey, at};
use crate::verbs::{DeleteOptions, Part};
use crate::world::ClusterConfig;

/// How long a node may be silent before it counts as unreachable, and how long pods of an absent node are kept.
const GRACE: SignedDuration = SignedDuration::from_secs(40);
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Items of this table are the leases of nodes.
const LEASES: &str = "coordination.k8s.io/leases";
const LEASE_NAMESPACE: &str = "kube-node-lease";
/// How often a node renews its lease, and how long the lease is.
const RENEWAL: Duration = Duration::from_secs(10);
const LEASE_SECONDS: u32 = 40;

/// How often the collector of pods comes round.
const COLLECTED_WITHIN: SignedDuration = SignedDuration::from_secs(20);

pub(super) struct Nodes {
    heartbeats: bool,
}

impl Nodes {
    pub(super) fn new(config: &ClusterConfig) -> Self {
        Self { heartbeats: config.heartbeats }
    }
}

impl Controller for Nodes {
    fn name(&self) -> &'static str {
        "kube-controller-manager"
    }

    fn observe(&mut self, seen: &Seen, view: &View, queue: &mut Queue) {
        match &*seen.table {
            "/nodes" => {
                queue.add(Item::new("/nodes", &seen.key));
                if self.heartbeats && seen.kind == EventKind::Added {
                    queue.add(Item::new(LEASES, &ObjectKey::new(LEASE_NAMESPACE, &seen.key.name)));
                }
                for (key, _) in view.pods.iter().filter(|(_, pod)| pod.node == seen.key.name) {
                    queue.add(Item::new("/pods", key));
                }
            }
            // Only pods of nodes that are in trouble are of interest.
            "/pods" if seen.kind != EventKind::Deleted => {
                let node = text(&seen.object, "/spec/nodeName");
                let troubled =
                    view.nodes.get(node).is_none_or(|node| node.object.pointer("/spec/taints").is_some());
                let is_left =
                    node.is_empty() && !text(&seen.object, "/metadata/deletionTimestamp").is_empty();
                if is_left || (!node.is_empty() && troubled) {
                    queue.add(Item::new("/pods", &seen.key));
                }
            }
            _ => {}
        }
    }

    fn reconcile(&mut self, item: &Item, api: &mut Api, view: &View) -> Result<Option<Duration>, ApiError> {
        match &*item.table {
            "/nodes" => self.look_at_node(&item.key, api),
            LEASES => self.renew_lease(&item.key, api),
            _ => self.look_at_pod(&item.key, api, view),
        }
    }
}

impl Nodes {
    fn look_at_node(&self, key: &ObjectKey, api: &mut Api) -> Result<Option<Duration>, ApiError> {
        let Some(found) = api.store.get("/nodes", key) else { return Ok(None) };
        let node = found.value();
        let row = api.row("", "nodes")?;
        let time = api.time();
        if let Some(since) = api.silent_nodes.get(&key.name).copied() {
            let left = GRACE - api.now().duration_since(since);
            if let Ok(left) = Duration::try_from(left)
                && !left.is_zero()
            {
                return Ok(Some(left));
            }
            api.modify(&row, key, Part::Status, self.name(), |object| {
                for kind in ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"] {
                    let message = "Kubelet stopped posting node status.";
                    let condition = json!({
                        "type": kind, "status": "Unknown", "reason": "NodeStatusUnknown", "message": message,
                        "lastHeartbeatTime": json!(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(since)),
                    });
                    set_condition(&mut object["status"], condition, &time);
                }
            })?;
        }
        let ready = condition(&node, "Ready");
        let wanted = |taint: &str, effect: &str| match (taint, effect) {
            (NOT_READY, _) => ready == Some("False"),
            (UNREACHABLE, _) => ready == Some("Unknown"),
            _ => at(&node, "/spec/unschedulable") == Some(&json!(true)),
        };
        api.modify(&row, key, Part::Main, self.name(), |object| {
            for (taint, effect) in [
                (NOT_READY, "NoSchedule"),
                (NOT_READY, "NoExecute"),
                (UNREACHABLE, "NoSchedule"),
                (UNREACHABLE, "NoExecute"),
                (UNSCHEDULABLE, "NoSchedule"),
            ] {
                set_taint(object, taint, effect, wanted(taint, effect), &time);
            }
        })?;
        Ok(None)
    }

    /// A node that speaks renews its lease, which is made the first time.
    fn renew_lease(&self, key: &ObjectKey, api: &mut Api) -> Result<Option<Duration>, ApiError> {
        let Some(node) = api.store.get("/nodes", &ObjectKey::new("", &key.name)) else { return Ok(None) };
        if api.silent_nodes.contains_key(&key.name) {
            return Ok(Some(RENEWAL));
        }
        let row = api.row("coordination.k8s.io", "leases")?;
        let now = json!(k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(api.now()));
        if api.store.get(LEASES, key).is_some() {
            api.modify(&row, key, Part::Main, "kubelet", |lease| lease["spec"]["renewTime"] = now)?;
            return Ok(Some(RENEWAL));
        }
        let owner = json!({
            "apiVersion": "v1", "kind": "Node", "name": &*key.name, "uid": text(&node.value(), "/metadata/uid"),
        });
        let lease = json!({
            "metadata": {"name": &*key.name, "ownerReferences": [owner]},
            "spec": {"holderIdentity": &*key.name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now},
        });
        api.create(&row, LEASE_NAMESPACE, lease, &Writer::named("kubelet"))?;
        Ok(Some(RENEWAL))
    }

    /// Pods leave nodes whose taints they do not tolerate (any longer), and are forgotten with their node.
    fn look_at_pod(&self, key: &ObjectKey, api: &mut Api, view: &View) -> Result<Option<Duration>, ApiError> {
        let Some(pod) = view.pods.get(key) else { return Ok(None) };
        if pod.node.is_empty() {
            return self.collect(key, api);
        }
        let row = api.row("", "pods")?;
        let Some(node) = view.nodes.get(&pod.node) else {
            // The node is gone for good: nobody else will finish this deletion.
            let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
            api.remove_object(&row, key, &options)?;
            return Ok(None);
        };
        if condition(&node.object, "Ready") != Some("True") && pod.ready {
            let time = api.time();
            api.modify(&row, key, Part::Status, self.name(), |object| {
                // As Kubernetes does it: without a reason.
                let condition = json!({"type": "Ready", "status": "False", "lastProbeTime": null});
                set_pod_condition(object, condition, &time);
            })?;
        }
        if pod.deleting || pod.over {
            return Ok(None);
        }
        let Some(found) = api.store.get("/pods", key) else { return Ok(None) };
        let Some(leave_at) = leave_at(&found.value(), &node.object) else { return Ok(None) };
        let left = leave_at.duration_since(api.now());
        if let Ok(left) = Duration::try_from(left)
            && !left.is_zero()
        {
            return Ok(Some(left));
        }
        let time = api.time();
        api.modify(&row, key, Part::Status, self.name(), |object| {
            let condition = json!({
                "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
                "message": "Taint manager: deleting due to NoExecute taint", "lastProbeTime": null,
            });
            set_pod_condition(object, condition, &time);
        })?;
        api.remove_object(&row, key, &DeleteOptions::default())?;
        Ok(None)
    }
}

impl Nodes {
    /// A pod that is deleted before it has a node, and kept by a finalizer, has failed: no kubelet will ever say so.
    fn collect(&self, key: &ObjectKey, api: &mut Api) -> Result<Option<Duration>, ApiError> {
        let Some(pod) = api.store.get("/pods", key).map(|found| found.value()) else { return Ok(None) };
        let Ok(deleted) = text(&pod, "/metadata/deletionTimestamp").parse::<Timestamp>() else {
            return Ok(None);
        };
        if matches!(text(&pod, "/status/phase"), "Succeeded" | "Failed") {
            return Ok(None);
        }
        let left = COLLECTED_WITHIN - api.now().duration_since(deleted);
        if let Ok(left) = Duration::try_from(left)
            && !left.is_zero()
        {
            return Ok(Some(left));
        }
        let row = api.row("", "pods")?;
        api.modify(&row, key, Part::Status, "pod-garbage-collector", |object| {
            object["status"]["phase"] = json!("Failed");
        })?;
        let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
        api.remove_object(&row, key, &options)?;
        Ok(None)
    }
}

/// When a pod must leave, by the `NoExecute` taints of its node.
fn leave_at(pod: &Value, node: &Value) -> Option<Timestamp> {
    let taints = at(node, "/spec/taints").and_then(Value::as_array)?;
    let tolerations = at(pod, "/spec/tolerations").and_then(Value::as_array);
    taints
        .iter()
        .filter(|taint| text(taint, "/effect") == "NoExecute")
        .filter_map(|taint| {
            let since: Timestamp = text(taint, "/timeAdded").parse().unwrap_or(Timestamp::UNIX_EPOCH);
            let tolerated =
                tolerations.into_iter().flatten().filter(|toleration| tolerates(toleration, taint));
            let mut longest = None;
            for toleration in tolerated {
                let seconds = toleration.get("tolerationSeconds").and_then(Value::as_i64)?;
                longest = Some(longest.map_or(seconds, |known: i64| known.min(seconds)));
            }
            since.saturating_add(SignedDuration::from_secs(longest.unwrap_or(0))).ok()
        })
        .min()
}

/// True if a toleration is for a taint.
pub(super) fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let key = text(toleration, "/key");
    let effect = text(toleration, "/effect");
    let exists = text(toleration, "/operator") == "Exists";
    (effect.is_empty() || effect == text(taint, "/effect"))
        && (key.is_empty() && exists || key == text(taint, "/key"))
        && (exists || text(toleration, "/value") == text(taint, "/value"))
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = at(object, "/status/conditions").and_then(Value::as_array)?;
    conditions
        .iter()
        .find(|condition| text(condition, "/type") == kind)
        .map(|condition| text(condition, "/status"))
}

fn set_taint(node: &mut Value, key: &str, effect: &str, wanted: bool, time: &Value) {
    let mut taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let is_it = |taint: &Value| text(taint, "/key") == key && text(taint, "/effect") == effect;
    let present = taints.iter().any(is_it);
    if wanted && !present {
        taints.push(match effect {
            "NoExecute" => json!({"key": key, "effect": effect, "timeAdded": time}),
            _ => json!({"key": key, "effect": effect}),
        });
    } else if !wanted && present {
        taints.retain(|taint| !is_it(taint));
    } else {
        return;
    }
    node["spec"]["taints"] = json!(taints);
}
