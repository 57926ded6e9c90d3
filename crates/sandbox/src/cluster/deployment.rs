//! Deployments: replica sets by template, rolled over within limits.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::events::{Happening, fnv, record};
use super::progress;
use super::queue::{Item, Queue};
use super::replicaset::FAILURE;
use super::rollout::{self, Limits, Size};
use super::view::View;
use super::{Controller, Seen, control_reference, controller_of, deleting, number, set_condition, text};
use crate::api::{Api, Writer};
use crate::error::ApiError;
use crate::registry::Resource;
use crate::store::{EventKind, ObjectKey, at};
use crate::verbs::{DeleteOptions, Part};

const TABLE: &str = "apps/deployments";
const REVISION: &str = "deployment.kubernetes.io/revision";
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
const HASH: &str = "pod-template-hash";

pub(super) struct Deployments;

/// A replica set of a deployment.
struct Set {
    key: ObjectKey,
    object: Arc<Value>,
}

impl Set {
    fn size(&self) -> Size {
        Size {
            wanted: number(&self.object, "/spec/replicas"),
            available: number(&self.object, "/status/availableReplicas"),
        }
    }

    fn revision(&self) -> i64 {
        annotation(&self.object, REVISION).parse().unwrap_or(0)
    }
}

impl Controller for Deployments {
    fn name(&self) -> &'static str {
        "kube-controller-manager"
    }

    fn observe(&mut self, seen: &Seen, _: &View, queue: &mut Queue) {
        match &*seen.table {
            TABLE if seen.kind != EventKind::Deleted => queue.add(Item::new(TABLE, &seen.key)),
            "apps/replicasets" => {
                let owner = controller_of(&seen.object).filter(|owner| text(owner, "/kind") == "Deployment");
                if let Some(owner) = owner {
                    queue.add(Item::new(TABLE, &ObjectKey::new(&seen.key.namespace, text(owner, "/name"))));
                }
            }
            // With strategy Recreate, new pods wait until the last old one is gone.
            "/pods" if seen.kind == EventKind::Deleted => {
                let set = controller_of(&seen.object).filter(|owner| text(owner, "/kind") == "ReplicaSet");
                let hash = format!("-{}", text(&seen.object, "/metadata/labels/pod-template-hash"));
                if let Some(name) = set.and_then(|set| text(set, "/name").strip_suffix(&hash)) {
                    queue.add(Item::new(TABLE, &ObjectKey::new(&seen.key.namespace, name)));
                }
            }
            _ => {}
        }
    }

    fn reconcile(&mut self, item: &Item, api: &mut Api, view: &View) -> Result<Option<Duration>, ApiError> {
        let Some(found) = api.store.get(TABLE, &item.key) else { return Ok(None) };
        let deployment = found.value();
        let row = api.row("apps", "deployments")?;
        let (mut sets, revision) = (sets_of(api, &deployment, view), api.store.revision());
        if !deleting(&deployment) && at(&deployment, "/spec/paused") != Some(&json!(true)) {
            self.roll(api, &row, &deployment, &sets, view)?;
        }
        if api.store.revision() != revision {
            sets = sets_of(api, &deployment, view);
        }
        self.write_status(api, &row, &item.key, &sets)?;
        Ok(api.store.get(TABLE, &item.key).and_then(|found| progress::look_again(&found.value(), api.now())))
    }
}

impl Deployments {
    /// One step towards all pods being of the present template.
    fn roll(
        &self,
        api: &mut Api,
        row: &Resource,
        deployment: &Value,
        sets: &[Set],
        view: &View,
    ) -> Result<(), ApiError> {
        debug_assert_eq!(row.kind, "Deployment");
        let replicas = number(deployment, "/spec/replicas");
        let current = sets.iter().position(|set| same_template(deployment, &set.object));
        let Some(current) = current else {
            let recreate = text(deployment, "/spec/strategy/type") == "Recreate";
            if recreate && self.stop_all(api, sets, view)? {
                return Ok(());
            }
            let limits = Limits::of(&deployment["spec"], replicas);
            let old_total: i64 = sets.iter().map(|set| set.size().wanted).sum();
            let size = if recreate || old_total == 0 {
                replicas
            } else {
                rollout::new_size(replicas, limits, Size { wanted: 0, available: 0 }, old_total)
            };
            return self.create_set(api, deployment, sets, size);
        };
        self.mark_revision(api, deployment, sets, current)?;
        let (new, old): (Vec<&Set>, Vec<&Set>) = {
            let (new, old): (Vec<_>, Vec<_>) =
                sets.iter().enumerate().partition(|(index, _)| *index == current);
            (new.into_iter().map(|(_, set)| set).collect(), old.into_iter().map(|(_, set)| set).collect())
        };
        let Some(new) = new.first() else { return Ok(()) };
        if text(deployment, "/spec/strategy/type") == "Recreate" {
            let stopping: Vec<Set> =
                old.iter().map(|set| Set { key: set.key.clone(), object: set.object.clone() }).collect();
            if !self.stop_all(api, &stopping, view)? {
                self.scale(api, deployment, new, replicas)?;
            }
            return Ok(());
        }
        let limits = Limits::of(&deployment["spec"], replicas);
        let old_total: i64 = old.iter().map(|set| set.size().wanted).sum();
        let size = if old_total == 0 {
            replicas
        } else {
            rollout::new_size(replicas, limits, new.size(), old_total)
        };
        self.scale(api, deployment, new, size)?;
        let sizes: Vec<Size> = old.iter().map(|set| set.size()).collect();
        let new_now = Size { wanted: size, available: new.size().available };
        for (set, size) in old.iter().zip(rollout::old_sizes(replicas, limits, new_now, &sizes)) {
            if set.size().wanted != size {
                self.scale(api, deployment, set, size)?;
            }
        }
        self.clean_up(api, deployment, &old)
    }

    /// Scales all sets to nothing; true while pods of theirs are left.
    fn stop_all(&self, api: &mut Api, sets: &[Set], view: &View) -> Result<bool, ApiError> {
        let mut left = false;
        for set in sets {
            if set.size().wanted > 0 {
                let row = api.row("apps", "replicasets")?;
                api.modify(&row, &set.key, Part::Main, self.name(), |object| {
                    object["spec"]["replicas"] = json!(0)
                })?;
            }
            left |= view.pods_of(text(&set.object, "/metadata/uid")).any(|(_, pod)| !pod.over);
        }
        Ok(left)
    }

    fn create_set(&self, api: &mut Api, deployment: &Value, sets: &[Set], size: i64) -> Result<(), ApiError> {
        let row = api.row("apps", "replicasets")?;
        let name = text(deployment, "/metadata/name");
        let namespace = text(deployment, "/metadata/namespace");
        let template = &deployment["spec"]["template"];
        let collisions = number(deployment, "/status/collisionCount");
        let hash = short_hash(fnv(&[&template.to_string(), &collisions.to_string()]));
        let revision = sets.iter().map(Set::revision).max().unwrap_or(0) + 1;
        let mut template = template.clone();
        template["metadata"]["labels"][HASH] = json!(hash);
        let mut selector = deployment["spec"]["selector"].clone();
        selector["matchLabels"][HASH] = json!(hash);
        let replicas = number(deployment, "/spec/replicas");
        let surge = Limits::of(&deployment["spec"], replicas).surge;
        let mut spec = json!({"replicas": size, "selector": selector, "template": template});
        if let Some(seconds) = at(deployment, "/spec/minReadySeconds") {
            spec["minReadySeconds"] = seconds.clone();
        }
        let set = json!({
            "metadata": {
                "name": format!("{name}-{hash}"),
                "labels": template["metadata"]["labels"],
                "annotations": {
                    REVISION: revision.to_string(),
                    "deployment.kubernetes.io/desired-replicas": replicas.to_string(),
                    "deployment.kubernetes.io/max-replicas": (replicas + surge).to_string(),
                },
                "ownerReferences": [control_reference(deployment)],
            },
            "spec": spec,
        });
        match api.create(&row, namespace, set, &Writer::named(self.name())) {
            Ok(_) => {
                let (key, time) = (ObjectKey::new(namespace, name), api.time());
                let row = api.row("apps", "deployments")?;
                api.modify(&row, &key, Part::Status, self.name(), |object| {
                    progress::created(&mut object["status"], &format!("{name}-{hash}"), &time);
                })?;
                let message = format!("Scaled up replica set {name}-{hash} from 0 to {size}");
                self.tell(api, deployment, "ScalingReplicaSet", &message)
            }
            // The name is taken by a set of another template: try with another hash.
            Err(error) if error.reason == "AlreadyExists" => {
                let key = ObjectKey::new(namespace, name);
                let row = api.row("apps", "deployments")?;
                api.modify(&row, &key, Part::Status, self.name(), |object| {
                    object["status"]["collisionCount"] = json!(collisions + 1);
                })?;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// The set of the present template has the highest revision, and the deployment tells it.
    fn mark_revision(
        &self,
        api: &mut Api,
        deployment: &Value,
        sets: &[Set],
        current: usize,
    ) -> Result<(), ApiError> {
        let highest = sets.iter().map(Set::revision).max().unwrap_or(0);
        let Some(set) = sets.get(current) else { return Ok(()) };
        let others = sets.iter().enumerate().filter(|(index, _)| *index != current);
        let other = others.map(|(_, set)| set.revision()).max().unwrap_or(0);
        let revision = if set.revision() > other { set.revision() } else { highest + 1 };
        let annotate = |object: &mut Value| {
            if !object["metadata"]["annotations"].is_object() {
                object["metadata"]["annotations"] = json!({});
            }
            object["metadata"]["annotations"][REVISION] = json!(revision.to_string());
        };
        if set.revision() != revision {
            let row = api.row("apps", "replicasets")?;
            let past: Vec<&str> =
                [annotation(&set.object, REVISION_HISTORY), annotation(&set.object, REVISION)]
                    .into_iter()
                    .filter(|revisions| !revisions.is_empty())
                    .collect();
            api.modify(&row, &set.key, Part::Main, self.name(), |object| {
                annotate(object);
                object["metadata"]["annotations"][REVISION_HISTORY] = json!(past.join(","));
            })?;
        }
        if annotation(deployment, REVISION) != revision.to_string() {
            let row = api.row("apps", "deployments")?;
            let key =
                ObjectKey::new(text(deployment, "/metadata/namespace"), text(deployment, "/metadata/name"));
            api.modify(&row, &key, Part::Main, self.name(), annotate)?;
        }
        Ok(())
    }

    fn scale(&self, api: &mut Api, deployment: &Value, set: &Set, size: i64) -> Result<(), ApiError> {
        let before = set.size().wanted;
        let replicas = number(deployment, "/spec/replicas");
        if before == size
            && annotation(&set.object, "deployment.kubernetes.io/desired-replicas") == replicas.to_string()
        {
            return Ok(());
        }
        let row = api.row("apps", "replicasets")?;
        let surge = Limits::of(&deployment["spec"], replicas).surge;
        api.modify(&row, &set.key, Part::Main, self.name(), |object| {
            object["spec"]["replicas"] = json!(size);
            let annotations = &mut object["metadata"]["annotations"];
            annotations["deployment.kubernetes.io/desired-replicas"] = json!(replicas.to_string());
            annotations["deployment.kubernetes.io/max-replicas"] = json!((replicas + surge).to_string());
        })?;
        if before == size {
            return Ok(());
        }
        let direction = if size > before { "up" } else { "down" };
        let message = format!("Scaled {direction} replica set {} from {before} to {size}", set.key.name);
        self.tell(api, deployment, "ScalingReplicaSet", &message)
    }

    /// Old, empty sets beyond the history that is kept go.
    fn clean_up(&self, api: &mut Api, deployment: &Value, old: &[&Set]) -> Result<(), ApiError> {
        let limit = usize::try_from(number(deployment, "/spec/revisionHistoryLimit")).unwrap_or(0);
        let mut idle: Vec<&&Set> = old
            .iter()
            .filter(|set| {
                set.size().wanted == 0
                    && number(&set.object, "/status/replicas") == 0
                    && !deleting(&set.object)
            })
            .collect();
        idle.sort_by_key(|set| set.revision());
        let row = api.row("apps", "replicasets")?;
        let surplus = idle.len().saturating_sub(limit);
        for set in idle.into_iter().take(surplus) {
            api.remove_object(&row, &set.key, &DeleteOptions::default())?;
        }
        Ok(())
    }

    fn write_status(
        &self,
        api: &mut Api,
        row: &Arc<Resource>,
        key: &ObjectKey,
        sets: &[Set],
    ) -> Result<(), ApiError> {
        let (time, now) = (api.time(), api.now());
        api.modify_status(row, key, self.name(), |object, status| {
            let before = status.clone();
            let deadline = number(object, "/spec/progressDeadlineSeconds");
            let sum = |pointer: &str| sets.iter().map(|set| number(&set.object, pointer)).sum::<i64>();
            let wanted = number(object, "/spec/replicas");
            let current = sets.iter().find(|set| same_template(object, &set.object));
            let updated = current.map_or(0, |set| number(&set.object, "/status/replicas"));
            let (total, ready, available) =
                (sum("/status/replicas"), sum("/status/readyReplicas"), sum("/status/availableReplicas"));
            let limits = Limits::of(&object["spec"], wanted);
            let enough = available >= wanted - limits.unavailable;
            let done = updated == wanted && total == wanted && available == wanted;
            let terminating = sum("/status/terminatingReplicas");
            let observed = object["metadata"]["generation"].clone();
            if !status.is_object() {
                *status = json!({});
            }
            status["observedGeneration"] = observed;
            status["terminatingReplicas"] = json!(terminating);
            for (field, value) in [
                ("replicas", total),
                ("updatedReplicas", updated),
                ("readyReplicas", ready),
                ("availableReplicas", available),
                ("unavailableReplicas", (total.max(wanted) - available).max(0)),
            ] {
                match (value, status.as_object_mut()) {
                    (0, Some(fields)) => {
                        fields.remove(field);
                    }
                    (value, _) => status[field] = json!(value),
                }
            }
            let condition = |kind: &str, state: bool, reason: &str, message: String| {
                let state = if state { "True" } else { "False" };
                json!({"type": kind, "status": state, "reason": reason, "message": message, "lastUpdateTime": time})
            };
            let availability = if enough { ("MinimumReplicasAvailable", "Deployment has minimum availability.") } else { ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.") };
            set_condition(status, condition("Available", enough, availability.0, availability.1.to_owned()), &time);
            copy_failure(status, current, &time);
            if let Some(current) = current {
                let progress = progress::Progress { set: &current.key.name, done, settled: total == updated, deadline };
                progress.write(&before, status, now, &time);
            }
        })
    }

    fn tell(&self, api: &mut Api, deployment: &Value, reason: &str, message: &str) -> Result<(), ApiError> {
        record(
            api,
            &Happening {
                about: deployment,
                warning: false,
                reason,
                message,
                component: "deployment-controller",
            },
        )
    }
}

/// Tells of a deployment what its replica set tells: that pods cannot be made.
fn copy_failure(status: &mut Value, current: Option<&Set>, time: &Value) {
    let conditions = current.and_then(|set| at(&set.object, "/status/conditions")).and_then(Value::as_array);
    let told = conditions.into_iter().flatten().find(|each| text(each, "/type") == FAILURE);
    if let Some(told) = told {
        let mut told = told.clone();
        told["lastUpdateTime"] = told["lastTransitionTime"].clone();
        set_condition(status, told, time);
    } else if let Some(own) = status.get_mut("conditions").and_then(Value::as_array_mut) {
        own.retain(|each| text(each, "/type") != FAILURE);
    }
}

/// The sets that a deployment controls, oldest revision first.
fn sets_of(api: &Api, deployment: &Value, view: &View) -> Vec<Set> {
    let mut sets: Vec<Set> = view
        .replica_sets
        .of(text(deployment, "/metadata/uid"))
        .filter_map(|key| {
            Some(Set { key: key.clone(), object: api.store.get("apps/replicasets", key)?.value() })
        })
        .collect();
    sets.sort_by(|a, b| (a.revision(), &a.key).cmp(&(b.revision(), &b.key)));
    sets
}

/// True if the set was made from the deployment's present template.
fn same_template(deployment: &Value, set: &Value) -> bool {
    let (template, set) = (&deployment["spec"]["template"], &set["spec"]["template"]);
    is_without(template, set, &["metadata", "labels", HASH])
}

/// Whether a value is another one without what is at `path` there.
fn is_without(value: &Value, other: &Value, path: &[&str]) -> bool {
    let (Value::Object(fields), Value::Object(others), [first, rest @ ..]) = (value, other, path) else {
        return value == other;
    };
    let gone = usize::from(rest.is_empty() && others.contains_key(*first));
    fields.len() + gone == others.len()
        && others.iter().filter(|(name, _)| gone == 0 || name != first).all(|(name, other)| {
            fields.get(name).is_some_and(|value| {
                if name == first { is_without(value, other, rest) } else { value == other }
            })
        })
}

fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    object
        .pointer("/metadata/annotations")
        .and_then(|all| all.get(key))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// A hash in the letters that Kubernetes uses for names.
pub(super) fn short_hash(hash: u64) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut left = hash;
    let letters = (0..10).map(|_| {
        let letter = LETTERS[usize::try_from(left % LETTERS.len() as u64).unwrap_or(0)];
        left /= LETTERS.len() as u64;
        char::from(letter)
    });
    letters.collect()
}
