//! StatefulSets: pods with names that stay, made and removed in order.

mod claims;
mod identity;
mod plan;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::events::{Happening, record};
use super::queue::{Item, Queue};
use super::replicaset::REFUSED;
use super::revisions::{History, REVISION, Revision};
use super::view::{PodView, View};
use super::{Controller, RETRY, Seen, control_reference, controller_of, deleting, number, text};
use crate::api::{Api, Writer};
use crate::error::ApiError;
use crate::store::{EventKind, LabelSelector, ObjectKey};
use crate::verbs::{DeleteOptions, Part};

use plan::{Order, Replica, State, Wish};

const TABLE: &str = "apps/statefulsets";
/// The label by which the revisions of StatefulSets tell their hash.
const HASH: &str = "controller.kubernetes.io/hash";

pub(super) struct StatefulSets;

/// The pods of a set by ordinal.
type Pods = BTreeMap<i64, (ObjectKey, PodView)>;

impl Controller for StatefulSets {
    fn name(&self) -> &'static str {
        "kube-controller-manager"
    }

    fn observe(&mut self, seen: &Seen, _: &View, queue: &mut Queue) {
        match &*seen.table {
            TABLE if seen.kind != EventKind::Deleted => queue.add(Item::new(TABLE, &seen.key)),
            "/pods" => {
                let set = match controller_of(&seen.object) {
                    Some(owner) => {
                        Some(text(owner, "/name")).filter(|_| text(owner, "/kind") == "StatefulSet")
                    }
                    // It may be adopted, or be in the way.
                    None => identity::set_and_ordinal(&seen.key.name).map(|(set, _)| set),
                };
                if let Some(set) = set {
                    queue.add(Item::new(TABLE, &ObjectKey::new(&seen.key.namespace, set)));
                }
            }
            _ => {}
        }
    }

    fn reconcile(&mut self, item: &Item, api: &mut Api, view: &View) -> Result<Option<Duration>, ApiError> {
        let Some(found) = api.store.get(TABLE, &item.key) else { return Ok(None) };
        let set = found.value();
        let pods = pods_of(&set, view);
        if deleting(&set) {
            return status::write(api, &item.key, &pods, None).map(|()| None);
        }
        // What was adopted is seen the next time.
        if self.adopt(api, &set, view)? {
            return Ok(None);
        }
        let history = History::keep(api, view, &set, HASH)?;
        let current = history.find(text(&set, "/status/currentRevision")).unwrap_or(&history.newest);
        let least = SignedDuration::from_secs(number(&set, "/spec/minReadySeconds"));
        let now = api.now();
        let waits = pods.values().filter_map(|(_, pod)| pod.until_available(least, now));
        let mut again: Option<Duration> =
            waits.filter(|wait| *wait > SignedDuration::ZERO).min().and_then(|wait| wait.try_into().ok());
        let replicas: BTreeMap<i64, Replica> = pods
            .iter()
            .map(|(ordinal, (_, pod))| {
                let updated = revision_of(pod) == history.newest.name();
                (*ordinal, Replica { state: state_of(pod, least, api), updated })
            })
            .collect();
        let wish = Wish::of(&set);
        claims::keep_owners(api, &set, &wish, &pods)?;
        let mut failure = None;
        for order in plan::plan(&wish, &replicas) {
            let outcome = match order {
                Order::Create(ordinal) => {
                    let revision = if wish.is_made_new(ordinal) { &history.newest } else { current };
                    self.create(api, &set, revision, ordinal)
                }
                Order::Delete(ordinal) => self.delete(api, &set, &pods, ordinal).map(|()| None),
            };
            match outcome {
                Ok(wait) => again = [again, wait].into_iter().flatten().min(),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        self.complete_claims(api, &set, &wish, &pods)?;
        let names = status::Names {
            current: current.name(),
            update: history.newest.name(),
            collisions: history.collisions,
        };
        status::write(api, &item.key, &pods, Some(&names))?;
        let mut in_use: BTreeSet<&str> = pods.values().map(|(_, pod)| revision_of(pod)).collect();
        in_use.insert(current.name());
        history.truncate(api, &set, &in_use)?;
        match failure {
            // Admission refuses it, and may do so for long.
            Some(error) if matches!(error.code, 403 | 422) => Ok(Some(REFUSED)),
            Some(error) => Err(error),
            None => Ok(again),
        }
    }
}

impl StatefulSets {
    /// Takes over pods of the set's name and labels that nothing controls; says whether there were any.
    fn adopt(&self, api: &mut Api, set: &Value, view: &View) -> Result<bool, ApiError> {
        let mut any = false;
        let (namespace, name) = (text(set, "/metadata/namespace"), text(set, "/metadata/name"));
        let selector = LabelSelector::from_json(&set["spec"]["selector"]);
        let first = ObjectKey::new(namespace, &format!("{name}-"));
        let named = view
            .orphans
            .range(first.clone()..)
            .take_while(|key| key.namespace == first.namespace && key.name.starts_with(&*first.name));
        for key in named {
            let ours = identity::set_and_ordinal(&key.name).is_some_and(|(set, _)| set == name);
            let fits = |pod: &PodView| !pod.deleting && selector.matches_labels(Some(&pod.labels));
            if ours && view.pods.get(key).is_some_and(fits) {
                let row = api.row("", "pods")?;
                api.modify(&row, key, Part::Main, self.name(), |pod| {
                    pod["metadata"]["ownerReferences"] = json!([control_reference(set)]);
                })?;
                any = true;
            }
        }
        Ok(any)
    }

    /// Creates a pod and its claims; says when to try again if an earlier claim is still on its way out.
    fn create(
        &self,
        api: &mut Api,
        set: &Value,
        revision: &Revision,
        ordinal: i64,
    ) -> Result<Option<Duration>, ApiError> {
        let (namespace, name) = (text(set, "/metadata/namespace"), text(set, "/metadata/name"));
        if claims::is_any_stale(api, set, ordinal) {
            return Ok(Some(RETRY));
        }
        self.create_claims(api, set, ordinal)?;
        let row = api.row("", "pods")?;
        let pod = identity::pod(set, &revision.template, revision.name(), ordinal);
        let pod_name = identity::pod_name(set, ordinal);
        match api.create(&row, namespace, pod, &Writer::named(self.name())) {
            Ok(_) => {
                let message = format!("Create Pod {pod_name} in StatefulSet {name} successful");
                self.tell(api, set, false, "SuccessfulCreate", &message)?;
                Ok(None)
            }
            // The namespace goes away; there is nothing to be done.
            Err(_) if api.is_terminating(namespace) => Ok(None),
            // A pod of another owner has the name: it may go.
            Err(error) if error.reason == "AlreadyExists" => Err(error),
            Err(error) => {
                let message = format!("Create Pod {pod_name} in StatefulSet {name} failed error: {error}");
                self.tell(api, set, true, "FailedCreate", &message)?;
                Err(error)
            }
        }
    }

    /// Pods that are not up yet get the claims that somebody deleted.
    fn complete_claims(&self, api: &mut Api, set: &Value, wish: &Wish, pods: &Pods) -> Result<(), ApiError> {
        let waiting = pods.iter().filter(|(ordinal, (_, pod))| {
            wish.ordinals.contains(ordinal) && !pod.ready && !pod.over && !pod.deleting
        });
        for (ordinal, _) in waiting {
            self.create_claims(api, set, *ordinal)?;
        }
        Ok(())
    }

    fn create_claims(&self, api: &mut Api, set: &Value, ordinal: i64) -> Result<(), ApiError> {
        let name = text(set, "/metadata/name");
        for (key, claim) in claims::missing(api, set, ordinal) {
            let row = api.row("", "persistentvolumeclaims")?;
            let about = format!(
                "Create Claim {} Pod {} in StatefulSet {name}",
                key.name,
                identity::pod_name(set, ordinal)
            );
            match api.create(&row, &key.namespace, claim, &Writer::named(self.name())) {
                Ok(_) => self.tell(api, set, false, "SuccessfulCreate", &format!("{about} success"))?,
                Err(_) if api.is_terminating(&key.namespace) => return Ok(()),
                Err(error) => {
                    self.tell(api, set, true, "FailedCreate", &format!("{about} failed error: {error}"))?;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn delete(&self, api: &mut Api, set: &Value, pods: &Pods, ordinal: i64) -> Result<(), ApiError> {
        let Some((key, _)) = pods.get(&ordinal) else { return Ok(()) };
        let row = api.row("", "pods")?;
        api.remove_object(&row, key, &DeleteOptions::default())?;
        let message =
            format!("Delete Pod {} in StatefulSet {} successful", key.name, text(set, "/metadata/name"));
        self.tell(api, set, false, "SuccessfulDelete", &message)
    }

    fn tell(
        &self,
        api: &mut Api,
        set: &Value,
        warning: bool,
        reason: &str,
        message: &str,
    ) -> Result<(), ApiError> {
        record(api, &Happening { about: set, warning, reason, message, component: "statefulset-controller" })
    }
}

fn pods_of(set: &Value, view: &View) -> Pods {
    let name = text(set, "/metadata/name");
    view.pods_of(text(set, "/metadata/uid"))
        .filter_map(|(key, pod)| {
            let (_, ordinal) = identity::set_and_ordinal(&key.name).filter(|(set, _)| *set == name)?;
            Some((ordinal, (key.clone(), pod.clone())))
        })
        .collect()
}

fn state_of(pod: &PodView, least: SignedDuration, api: &Api) -> State {
    match pod.until_available(least, api.now()) {
        _ if pod.deleting => State::Terminating,
        _ if pod.over => State::Over,
        None => State::Unready,
        Some(wait) if wait > SignedDuration::ZERO => State::Ready,
        Some(_) => State::Available,
    }
}

/// The name of the revision that a pod was made from.
fn revision_of(pod: &PodView) -> &str {
    pod.labels.get(REVISION).and_then(Value::as_str).unwrap_or_default()
}
