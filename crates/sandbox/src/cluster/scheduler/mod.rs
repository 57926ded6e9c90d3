//! The scheduler: filter, score, bind; or say why not.

mod filter;
mod score;
mod topology;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::events::{Happening, record};
use super::queue::{Item, Queue};
use super::view::{Amounts, View, pod_requests};
use super::{Controller, Seen, deleting, set_pod_condition, text};
use crate::api::Api;
use crate::error::ApiError;
use crate::store::{EventKind, ObjectKey, at};
use crate::verbs::Part;

pub(super) use filter::{selected, untolerated};
use topology::Topology;

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
        let gated = at(&pod, "/spec/schedulingGates").is_some();
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
                    set_pod_condition(object, condition, &time);
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

/// The node for a pod: of those that fit, the best by score; then the one with fewest pods, then the first by name.
fn choose(pod: &Value, view: &View) -> Result<Arc<str>, String> {
    let requests = pod_requests(pod);
    let topology = Topology::of(pod, view);
    let none = Amounts::new();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut best: Option<((i128, i128), &Arc<str>)> = None;
    for (name, node) in &view.nodes {
        let used = view.used.get(name).unwrap_or(&none);
        let mut refused = filter::refusals(pod, node, &requests, used);
        if refused.is_empty() {
            refused.extend(topology.refusal(&node.object));
        }
        if refused.is_empty() {
            let score = (score::score(pod, node, &requests, used), -used.get("pods").copied().unwrap_or(0));
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
        "0/{all} nodes are available: {}. preemption: 0/{all} nodes are available: {all} No preemption victims found for \
         incoming pod.",
        listed.join(", ")
    ))
}
