//! Replica sets: as many pods as asked for.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::events::{Happening, record};
use super::queue::{Item, Queue};
use super::view::{PodView, View};
use super::{Controller, Seen, control_reference, controller_of, deleting, number, set_condition, text};
use crate::api::{Api, Writer};
use crate::error::ApiError;
use crate::registry::Resource;
use crate::store::{EventKind, ObjectKey};
use crate::verbs::DeleteOptions;

const TABLE: &str = "apps/replicasets";
/// The condition that says that pods cannot be made.
pub(super) const FAILURE: &str = "ReplicaFailure";
/// How long a set waits that admission refuses pods.
pub(super) const REFUSED: Duration = Duration::from_secs(5);

pub(super) struct ReplicaSets;

impl Controller for ReplicaSets {
    fn name(&self) -> &'static str {
        "kube-controller-manager"
    }

    fn observe(&mut self, seen: &Seen, _: &View, queue: &mut Queue) {
        match &*seen.table {
            TABLE if seen.kind != EventKind::Deleted => queue.add(Item::new(TABLE, &seen.key)),
            "/pods" => {
                let owner = controller_of(&seen.object).filter(|owner| text(owner, "/kind") == "ReplicaSet");
                if let Some(owner) = owner {
                    queue.add(Item::new(TABLE, &ObjectKey::new(&seen.key.namespace, text(owner, "/name"))));
                }
            }
            _ => {}
        }
    }

    fn reconcile(&mut self, item: &Item, api: &mut Api, view: &View) -> Result<Option<Duration>, ApiError> {
        let Some(found) = api.store.get(TABLE, &item.key) else { return Ok(None) };
        let set = found.value();
        let row = api.row("apps", "replicasets")?;
        let pods: Vec<(ObjectKey, PodView)> = view
            .pods_of(text(&set, "/metadata/uid"))
            .filter(|(_, pod)| !pod.over && !pod.deleting)
            .map(|(key, pod)| (key.clone(), pod.clone()))
            .collect();
        let wanted = usize::try_from(number(&set, "/spec/replicas")).unwrap_or(0);
        let mut failure = None;
        if !deleting(&set) {
            if pods.len() < wanted {
                failure = self.add_pods(api, &set, wanted - pods.len()).err();
            } else if pods.len() > wanted {
                self.remove_pods(api, &set, &pods, pods.len() - wanted)?;
            }
        }
        let least = SignedDuration::from_secs(number(&set, "/spec/minReadySeconds"));
        let now = api.now();
        let waits: Vec<SignedDuration> =
            pods.iter().filter_map(|(_, pod)| pod.until_available(least, now)).collect();
        let available = waits.iter().filter(|wait| **wait <= SignedDuration::ZERO).count();
        let terminating =
            view.pods_of(text(&set, "/metadata/uid")).filter(|(_, pod)| !pod.over && pod.deleting).count();
        self.write_status(api, &row, &item.key, &pods, (available, terminating), failure.as_ref())?;
        match failure {
            // Admission refuses it, and may do so for long.
            Some(error) if matches!(error.code, 403 | 422) => Ok(Some(REFUSED)),
            Some(error) => Err(error),
            // A ready pod becomes available by the mere passing of time.
            None => Ok(waits
                .into_iter()
                .filter(|wait| *wait > SignedDuration::ZERO)
                .min()
                .and_then(|wait| wait.try_into().ok())),
        }
    }
}

impl ReplicaSets {
    fn add_pods(&self, api: &mut Api, set: &Value, count: usize) -> Result<(), ApiError> {
        let row = api.row("", "pods")?;
        let namespace = text(set, "/metadata/namespace");
        let mut pod = set["spec"]["template"].clone();
        if !pod["metadata"].is_object() {
            pod["metadata"] = json!({});
        }
        pod["metadata"]["generateName"] = json!(format!("{}-", text(set, "/metadata/name")));
        pod["metadata"]["ownerReferences"] = json!([control_reference(set)]);
        for _ in 0..count {
            match api.create(&row, namespace, pod.clone(), &Writer::named(self.name())) {
                Ok(made) => {
                    let message = format!("Created pod: {}", text(&made.value(), "/metadata/name"));
                    self.tell(api, set, false, "SuccessfulCreate", &message)?;
                }
                // The namespace goes away; there is nothing to be done.
                Err(_) if api.is_terminating(namespace) => return Ok(()),
                Err(error) => {
                    self.tell(api, set, true, "FailedCreate", &format!("Error creating: {error}"))?;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Pods without a node go first, then those that are not ready, then the youngest.
    fn remove_pods(
        &self,
        api: &mut Api,
        set: &Value,
        pods: &[(ObjectKey, PodView)],
        count: usize,
    ) -> Result<(), ApiError> {
        let row = api.row("", "pods")?;
        let mut order: Vec<&(ObjectKey, PodView)> = pods.iter().collect();
        order.sort_by(|(a_key, a), (b_key, b)| {
            (!a.node.is_empty(), a.ready, &b.created, b_key).cmp(&(
                !b.node.is_empty(),
                b.ready,
                &a.created,
                a_key,
            ))
        });
        for (key, _) in order.into_iter().take(count) {
            api.remove_object(&row, key, &DeleteOptions::default())?;
            self.tell(api, set, false, "SuccessfulDelete", &format!("Deleted pod: {}", key.name))?;
        }
        Ok(())
    }

    fn write_status(
        &self,
        api: &mut Api,
        row: &Arc<Resource>,
        key: &ObjectKey,
        pods: &[(ObjectKey, PodView)],
        (available, terminating): (usize, usize),
        failure: Option<&ApiError>,
    ) -> Result<(), ApiError> {
        let time = api.time();
        let total = pods.len();
        let ready = pods.iter().filter(|(_, pod)| pod.ready).count();
        api.modify_status(row, key, self.name(), |object, status| {
            let (observed, conditions) = (&object["metadata"]["generation"], status.get("conditions").cloned());
            *status = json!({"replicas": total, "observedGeneration": observed, "terminatingReplicas": terminating});
            // Told once: the next message differs by the name of the pod alone.
            let told = |all: &Value| all.as_array().into_iter().flatten().any(|each| text(each, "/type") == FAILURE);
            let others = conditions.as_ref().and_then(Value::as_array).into_iter().flatten();
            let others: Vec<_> = others.filter(|each| text(each, "/type") != FAILURE).cloned().collect();
            if let Some(failure) = failure {
                let before = conditions.as_ref().is_some_and(told);
                status["conditions"] = conditions.unwrap_or_else(|| json!([]));
                if !before {
                    let told = json!({"type": FAILURE, "status": "True", "reason": "FailedCreate", "message": failure.message});
                    set_condition(status, told, &time);
                }
            } else if !others.is_empty() {
                status["conditions"] = json!(others);
            }
            let counted =
                [("fullyLabeledReplicas", total), ("readyReplicas", ready), ("availableReplicas", available)];
            for (field, value) in counted.into_iter().filter(|(_, value)| *value > 0) {
                status[field] = json!(value);
            }
        })
    }

    fn tell(
        &self,
        api: &mut Api,
        set: &Value,
        warning: bool,
        reason: &str,
        message: &str,
    ) -> Result<(), ApiError> {
        record(api, &Happening { about: set, warning, reason, message, component: "replicaset-controller" })
    }
}
