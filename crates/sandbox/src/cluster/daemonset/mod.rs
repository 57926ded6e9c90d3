//! DaemonSets: one pod on every node that is one for it.

mod plan;
mod pod;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::events::{Happening, record};
use super::queue::{Item, Queue};
use super::replicaset::REFUSED;
use super::revisions::{History, REVISION, Revision};
use super::view::{PodView, View};
use super::{Controller, Seen, control_reference, controller_of, deleting, number, text};
use crate::api::{Api, Writer};
use crate::error::ApiError;
use crate::store::{EventKind, LabelSelector, ObjectKey};
use crate::verbs::{DeleteOptions, Part};

use plan::{Daemon, Fit, Place, Update};

const TABLE: &str = "apps/daemonsets";

/// The controller of DaemonSets.
#[derive(Default)]
pub(super) struct DaemonSets {
    /// All there are: each is looked at when a node changes.
    known: BTreeSet<ObjectKey>,
}

impl Controller for DaemonSets {
    fn name(&self) -> &'static str {
        "kube-controller-manager"
    }

    fn observe(&mut self, seen: &Seen, _: &View, queue: &mut Queue) {
        match &*seen.table {
            TABLE if seen.kind == EventKind::Deleted => _ = self.known.remove(&seen.key),
            TABLE => {
                self.known.insert(seen.key.clone());
                queue.add(Item::new(TABLE, &seen.key));
            }
            "/pods" => match controller_of(&seen.object) {
                Some(owner) if text(owner, "/kind") == "DaemonSet" => {
                    queue.add(Item::new(TABLE, &ObjectKey::new(&seen.key.namespace, text(owner, "/name"))));
                }
                Some(_) => {}
                // One of them may adopt it.
                None if seen.kind != EventKind::Deleted => {
                    let near = self.known.iter().filter(|key| key.namespace == seen.key.namespace);
                    near.for_each(|key| queue.add(Item::new(TABLE, key)));
                }
                None => {}
            },
            "/nodes" => self.known.iter().for_each(|key| queue.add(Item::new(TABLE, key))),
            _ => {}
        }
    }

    fn reconcile(&mut self, item: &Item, api: &mut Api, view: &View) -> Result<Option<Duration>, ApiError> {
        let Some(found) = api.store.get(TABLE, &item.key) else { return Ok(None) };
        let set = found.value();
        if deleting(&set) {
            return Ok(None);
        }
        // What was adopted is seen the next time.
        if self.adopt(api, &set, view)? {
            return Ok(None);
        }
        let history = History::keep(api, view, &set, REVISION)?;
        let found = Found::of(api, &set, &history.newest, view);
        let wanted = found.places.iter().filter(|place| place.fit == Fit::Runs).count();
        let update = Update::of(&set, i64::try_from(wanted).unwrap_or(i64::MAX));
        let failure = self.carry_out(api, &set, &history.newest, &found, update).err();
        status::write(api, &item.key, &found.places, history.collisions)?;
        let hashes = view.pods_of(text(&set, "/metadata/uid")).map(|(_, pod)| hash_of(pod)).collect();
        history.truncate(api, &set, &hashes)?;
        match failure {
            // Admission refuses it, and may do so for long.
            Some(error) if matches!(error.code, 403 | 422) => Ok(Some(REFUSED)),
            Some(error) => Err(error),
            None => Ok(found.again),
        }
    }
}

/// The nodes, and what of a DaemonSet is on them.
struct Found {
    places: Vec<Place>,
    /// Pods that wait for a node that is gone.
    lost: Vec<ObjectKey>,
    /// When the next pod becomes available by the mere passing of time.
    again: Option<Duration>,
}

impl Found {
    fn of(api: &Api, set: &Value, newest: &Revision, view: &View) -> Self {
        let least = SignedDuration::from_secs(number(set, "/spec/minReadySeconds"));
        let now = api.now();
        let mut lost = Vec::new();
        let mut again = None;
        let mut by_node: BTreeMap<Arc<str>, Vec<(&ObjectKey, &PodView)>> = BTreeMap::new();
        for (key, pod) in view.pods_of(text(set, "/metadata/uid")) {
            let node = if pod.node.is_empty() {
                let object = api.store.get("/pods", key).map(|found| found.value());
                object.map(|object| pod::target(&object).into()).unwrap_or_default()
            } else {
                pod.node.clone()
            };
            if pod.node.is_empty() && !pod.deleting && !view.nodes.contains_key(&node) {
                lost.push(key.clone());
            }
            let wait = pod.until_available(least, now).filter(|wait| *wait > SignedDuration::ZERO);
            again = [again, wait].into_iter().flatten().min();
            if !(pod.over && pod.deleting) {
                by_node.entry(node).or_default().push((key, pod));
            }
        }
        let template = pod::tolerant(newest.template.clone());
        let daemon = |(key, pod): &(&ObjectKey, &PodView)| Daemon {
            key: (*key).clone(),
            updated: hash_of(pod) == newest.hash(),
            terminating: pod.deleting,
            over: pod.over,
            ready: pod.ready,
            available: pod.until_available(least, now).is_some_and(|wait| wait <= SignedDuration::ZERO),
        };
        let place = |(name, node): (&Arc<str>, &super::view::NodeView)| {
            let mut pods = by_node.remove(name).unwrap_or_default();
            pods.sort_by(|(a_key, a), (b_key, b)| {
                (a.node.is_empty(), &a.created, a_key).cmp(&(b.node.is_empty(), &b.created, b_key))
            });
            Place {
                node: name.to_string(),
                fit: pod::fit(&template, &node.object),
                pods: pods.iter().map(daemon).collect(),
            }
        };
        let places = view.nodes.iter().map(place).collect();
        Self { places, lost, again: again.and_then(|wait| wait.try_into().ok()) }
    }
}

impl DaemonSets {
    /// Takes over pods that carry the labels of the set and that nothing controls; says whether there were any.
    fn adopt(&self, api: &mut Api, set: &Value, view: &View) -> Result<bool, ApiError> {
        let mut any = false;
        let selector = LabelSelector::from_json(&set["spec"]["selector"]);
        let first = ObjectKey::new(text(set, "/metadata/namespace"), "");
        let near = view.orphans.range(first.clone()..).take_while(|key| key.namespace == first.namespace);
        let fits = |pod: &PodView| !pod.deleting && selector.matches_labels(Some(&pod.labels));
        for key in near.filter(|key| view.pods.get(*key).is_some_and(fits)) {
            let row = api.row("", "pods")?;
            api.modify(&row, key, Part::Main, self.name(), |pod| {
                pod["metadata"]["ownerReferences"] = json!([control_reference(set)]);
            })?;
            any = true;
        }
        Ok(any)
    }

    fn carry_out(
        &self,
        api: &mut Api,
        set: &Value,
        newest: &Revision,
        found: &Found,
        update: Update,
    ) -> Result<(), ApiError> {
        let orders = plan::plan(&found.places, update);
        for key in &orders.clear {
            self.tell_of_end(api, set, key)?;
        }
        for key in orders.clear.iter().chain(&orders.delete).chain(&found.lost) {
            let row = api.row("", "pods")?;
            api.remove_object(&row, key, &DeleteOptions::default())?;
            self.tell(api, set, false, "SuccessfulDelete", &format!("Deleted pod: {}", key.name))?;
        }
        for node in &orders.create {
            self.create(api, set, newest, node)?;
        }
        Ok(())
    }

    fn create(&self, api: &mut Api, set: &Value, newest: &Revision, node: &str) -> Result<(), ApiError> {
        let row = api.row("", "pods")?;
        let namespace = text(set, "/metadata/namespace");
        let pod = pod::for_node(set, newest, node);
        match api.create(&row, namespace, pod, &Writer::named(self.name())) {
            Ok(made) => {
                let message = format!("Created pod: {}", text(&made.value(), "/metadata/name"));
                self.tell(api, set, false, "SuccessfulCreate", &message)
            }
            // The namespace goes away; there is nothing to be done.
            Err(_) if api.is_terminating(namespace) => Ok(()),
            Err(error) => {
                self.tell(api, set, true, "FailedCreate", &format!("Error creating: {error}"))?;
                Err(error)
            }
        }
    }

    /// Tells that a pod that should run for ever has ended.
    fn tell_of_end(&self, api: &mut Api, set: &Value, key: &ObjectKey) -> Result<(), ApiError> {
        let Some(pod) = api.store.get("/pods", key).map(|found| found.value()) else { return Ok(()) };
        let node = text(&pod, "/spec/nodeName");
        if text(&pod, "/status/phase") == "Failed" {
            let message = format!("Found failed daemon pod {key} on node {node}, will try to kill it");
            return self.tell(api, set, true, "FailedDaemonPod", &message);
        }
        let message = format!("Found succeeded daemon pod {key} on node {node}, will try to delete it");
        self.tell(api, set, false, "SucceededDaemonPod", &message)
    }

    fn tell(
        &self,
        api: &mut Api,
        set: &Value,
        warning: bool,
        reason: &str,
        message: &str,
    ) -> Result<(), ApiError> {
        record(api, &Happening { about: set, warning, reason, message, component: "daemonset-controller" })
    }
}

/// The hash of the template that a pod was made from.
fn hash_of(pod: &PodView) -> &str {
    pod.labels.get(REVISION).and_then(Value::as_str).unwrap_or_default()
}
