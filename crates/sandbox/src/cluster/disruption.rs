//! Pod disruption budgets: how many pods may be evicted now.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::queue::{Item, Queue};
use super::view::View;
use super::{Controller, Seen, set_condition, text};
use crate::api::Api;
use crate::error::ApiError;
use crate::store::{EventKind, LabelSelector, ObjectKey, at};
use crate::verbs::Part;

const TABLE: &str = "policy/poddisruptionbudgets";

/// The budgets of each namespace.
#[derive(Default)]
pub(super) struct Disruption {
    budgets: BTreeSet<ObjectKey>,
}

impl Controller for Disruption {
    fn name(&self) -> &'static str {
        "kube-controller-manager"
    }

    fn observe(&mut self, seen: &Seen, _: &View, queue: &mut Queue) {
        match &*seen.table {
            TABLE if seen.kind == EventKind::Deleted => {
                self.budgets.remove(&seen.key);
            }
            TABLE => {
                self.budgets.insert(seen.key.clone());
                queue.add(Item::new(TABLE, &seen.key));
            }
            "/pods" | "apps/replicasets" => {
                for key in self.budgets.iter().filter(|key| key.namespace == seen.key.namespace) {
                    queue.add(Item::new(TABLE, key));
                }
            }
            _ => {}
        }
    }

    fn reconcile(&mut self, item: &Item, api: &mut Api, view: &View) -> Result<Option<Duration>, ApiError> {
        let Some(found) = api.store.get(TABLE, &item.key) else { return Ok(None) };
        let budget = found.value();
        let selector = LabelSelector::from_json(&budget["spec"]["selector"]);
        let pods: Vec<_> = view
            .pods_in(&item.key.namespace)
            .filter(|(_, pod)| !pod.over && selector.matches_labels(Some(&pod.labels)))
            .collect();
        let healthy = pods.iter().filter(|(_, pod)| pod.ready && !pod.deleting).count();
        let keys: Vec<&ObjectKey> = pods.iter().map(|(key, _)| *key).collect();
        // A plain number needs no count of what the owners want.
        let plain = at(&budget, "/spec/minAvailable").is_some_and(Value::is_number);
        let expected = if plain { keys.len() } else { expected_pods(api, view, &item.key, &keys) };
        let desired = match (at(&budget, "/spec/minAvailable"), at(&budget, "/spec/maxUnavailable")) {
            (Some(least), _) => resolve(least, expected),
            (None, Some(most)) => expected.saturating_sub(resolve(most, expected)),
            (None, None) => expected.saturating_sub(1),
        };
        let allowed = healthy.saturating_sub(desired);
        let row = api.row("policy", "poddisruptionbudgets")?;
        let time = api.time();
        api.modify(&row, &item.key, Part::Status, self.name(), |object| {
            let generation = object["metadata"]["generation"].clone();
            let status = &mut object["status"];
            if !status.is_object() {
                *status = json!({});
            }
            status["currentHealthy"] = json!(healthy);
            status["desiredHealthy"] = json!(desired);
            status["expectedPods"] = json!(expected);
            status["disruptionsAllowed"] = json!(allowed);
            status["observedGeneration"] = generation.clone();
            let (state, reason) =
                if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
            let condition =
                json!({"type": "DisruptionAllowed", "status": state, "reason": reason, "message": "", "observedGeneration": generation});
            set_condition(status, condition, &time);
        })?;
        Ok(None)
    }
}

/// As many as the owners of the pods ask for; pods without an owner count for themselves.
fn expected_pods(api: &Api, view: &View, budget: &ObjectKey, pods: &[&ObjectKey]) -> usize {
    let mut sets: BTreeSet<&str> = BTreeSet::new();
    let mut alone = 0;
    for pod in pods.iter().filter_map(|key| view.pods.get(*key)) {
        match &pod.owner {
            Some(owner) => {
                sets.insert(owner);
            }
            None => alone += 1,
        }
    }
    let wanted = api
        .store
        .scan("apps/replicasets", Some(&budget.namespace), None)
        .map(|set| set.value())
        .filter(|set| sets.contains(text(set, "/metadata/uid")))
        .map(|set| usize::try_from(super::number(&set, "/spec/replicas")).unwrap_or(0));
    alone + wanted.sum::<usize>()
}

/// A number or a share, rounded up.
fn resolve(value: &Value, of: usize) -> usize {
    match value {
        Value::String(text) => {
            let percent: usize = text.trim_end_matches('%').parse().unwrap_or(0);
            (percent * of).div_ceil(100)
        }
        number => number.as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or(0),
    }
}
