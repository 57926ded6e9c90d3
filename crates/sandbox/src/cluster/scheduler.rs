//! The scheduler: filter, score, bind; or say why not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::events::{Happening, record};
use super::nodes::tolerates;
use super::queue::{Item, Queue};
use super::view::{Amounts, NodeView, View, pod_requests};
use super::{Controller, Seen, deleting, set_condition, text};
use crate::api::Api;
use crate::error::ApiError;
use crate::store::{EventKind, LabelSelector, ObjectKey};
use crate::verbs::Part;

#[derive(Default)]
pub(super) struct Scheduler {
    /// Pods that found no node, to be tried again when room may have appeared.
    waiting: BTreeSet<ObjectKey>,
}

impl Controller for Scheduler {
    fn name(&self) -> &'static str {
        "kube-scheduler"
    }

    fn observe(&mut self, seen: &Seen, _: &View, queue: &mut Queue) {
        let room = match &*seen.table {
            "/nodes" => true,
            "/pods" => {
                let over = matches!(text(&seen.object, "/status/phase"), "Succeeded" | "Failed");
                let bound = !text(&seen.object, "/spec/nodeName").is_empty();
                if seen.kind == EventKind::Deleted || over || bound || deleting(&seen.object) {
                    self.waiting.remove(&seen.key);
                } else if !self.waiting.contains(&seen.key) {
                    queue.add(Item::new("/pods", &seen.key));
                }
                bound && (seen.kind == EventKind::Deleted || over)
            }
            _ => false,
        };
        if room {
            for key in &self.waiting {
                queue.add(Item::new("/pods", key));
            }
        }
    }

    fn reconcile(&mut self, item: &Item, api: &mut Api, view: &View) -> Result<Option<Duration>, ApiError> {
        let Some(found) = api.store.get("/pods", &item.key) else { return Ok(None) };
        let pod = found.value();
        let ours = text(&pod, "/spec/schedulerName") == "default-scheduler";
        let gated = pod.pointer("/spec/schedulingGates").is_some();
        if !ours || gated || deleting(&pod) || !text(&pod, "/spec/nodeName").is_empty() {
            return Ok(None);
        }
        match choose(&pod, view) {
            Ok(node) => {
                self.waiting.remove(&item.key);
                api.bind(&item.key, &node, self.name())?;
                let message = format!("Successfully assigned {} to {node}", item.key);
                self.tell(api, &pod, false, "Scheduled", &message)?;
            }
            Err(message) => {
                self.waiting.insert(item.key.clone());
                let row = api.row("", "pods")?;
                let time = api.time();
                api.modify(&row, &item.key, Part::Status, self.name(), |object| {
                    let condition = json!({
                        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
                        "lastProbeTime": null,
                    });
                    set_condition(&mut object["status"], condition, &time);
                })?;
                self.tell(api, &pod, true, "FailedScheduling", &message)?;
            }
        }
        Ok(None)
    }
}

impl Scheduler {
    fn tell(
        &self,
        api: &mut Api,
        pod: &Value,
        warning: bool,
        reason: &str,
        message: &str,
    ) -> Result<(), ApiError> {
        record(api, &Happening { about: pod, warning, reason, message, component: "default-scheduler" })
    }
}

/// The node for a pod: of those that fit, the one with most room left; the first by name among equals.
fn choose(pod: &Value, view: &View) -> Result<Arc<str>, String> {
    let requests = pod_requests(pod);
    let none = Amounts::new();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut best: Option<(i128, &Arc<str>)> = None;
    for (name, node) in &view.nodes {
        let used = view.used.get(name).unwrap_or(&none);
        let refused = refusals(pod, node, &requests, used);
        if refused.is_empty() {
            let score = free_share(node, &requests, used);
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, name));
            }
        }
        for reason in refused {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    if let Some((_, node)) = best {
        return Ok(node.clone());
    }
    if view.nodes.is_empty() {
        return Err("no nodes available to schedule pods".to_owned());
    }
    let mut listed: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    listed.sort();
    let all = view.nodes.len();
    Err(format!(
        "0/{all} nodes are available: {}. preemption: 0/{all} nodes are available: {all} No preemption victims found for incoming pod.",
        listed.join(", ")
    ))
}

/// Why a pod cannot run on a node, in the words of kube-scheduler; empty if it can.
fn refusals(pod: &Value, node: &NodeView, requests: &Amounts, used: &Amounts) -> Vec<String> {
    if node.object.pointer("/spec/unschedulable") == Some(&json!(true)) {
        return vec!["node(s) were unschedulable".to_owned()];
    }
    if let Some(taint) = untolerated(pod, &node.object) {
        return vec![format!(
            "node(s) had untolerated taint(s) {{{}: {}}}",
            text(taint, "/key"),
            text(taint, "/value")
        )];
    }
    if !selected(pod, &node.object) {
        return vec!["node(s) didn't match Pod's node affinity/selector".to_owned()];
    }
    let mut out = Vec::new();
    for (resource, wanted) in requests {
        let room =
            node.allocatable.get(resource).copied().unwrap_or(0) - used.get(resource).copied().unwrap_or(0);
        if *wanted > 0 && *wanted > room {
            out.push(match &**resource {
                "pods" => "Too many pods".to_owned(),
                other => format!("Insufficient {other}"),
            });
        }
    }
    out
}

/// The first taint that keeps the pod away.
fn untolerated<'a>(pod: &Value, node: &'a Value) -> Option<&'a Value> {
    let taints = node.pointer("/spec/taints").and_then(Value::as_array)?;
    let tolerations = pod.pointer("/spec/tolerations").and_then(Value::as_array);
    taints
        .iter()
        .filter(|taint| text(taint, "/effect") != "PreferNoSchedule")
        .find(|taint| !tolerations.into_iter().flatten().any(|toleration| tolerates(toleration, taint)))
}

fn selected(pod: &Value, node: &Value) -> bool {
    let labels = node.pointer("/metadata/labels");
    if let Some(selector) = pod.pointer("/spec/nodeSelector")
        && !LabelSelector::from_map(selector).matches_labels(labels)
    {
        return false;
    }
    let terms =
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let Some(terms) = pod.pointer(terms).and_then(Value::as_array) else { return true };
    let name = json!({"metadata.name": text(node, "/metadata/name")});
    terms.iter().any(|term| {
        let expressions =
            |field: &str| json!({"matchExpressions": term.get(field).cloned().unwrap_or_else(|| json!([]))});
        (term.get("matchExpressions").is_some() || term.get("matchFields").is_some())
            && LabelSelector::from_json(&expressions("matchExpressions")).matches_labels(labels)
            && LabelSelector::from_json(&expressions("matchFields")).matches_labels(Some(&name))
    })
}

/// How much of a node stays free, over cpu and memory, in millionths.
fn free_share(node: &NodeView, requests: &Amounts, used: &Amounts) -> i128 {
    let share = |resource: &str| {
        let all = node.allocatable.get(resource).copied().unwrap_or(0);
        let taken = used.get(resource).copied().unwrap_or(0) + requests.get(resource).copied().unwrap_or(0);
        if all == 0 { 0 } else { (all - taken).max(0) * 1_000_000 / all }
    };
    share("cpu") + share("memory")
}
