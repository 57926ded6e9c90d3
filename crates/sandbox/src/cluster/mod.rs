//! The rest of a cluster: the controllers that act on its store, one after the other, in a fixed order.

mod bootstrap;
mod daemonset;
mod definitions;
mod deployment;
mod disruption;
mod endpoints;
mod events;
mod garbage;
mod indexes;
mod job;
mod kubelet;
mod namespaces;
mod nodes;
mod progress;
mod queue;
mod quota;
mod replicaset;
mod revisions;
mod rollout;
mod scheduler;
mod signing;
mod statefulset;
mod view;
mod volumes;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::api::{Api, in_turn};
use crate::error::ApiError;
use crate::store::{EventKind, ObjectKey, at};
use crate::world::ClusterConfig;

pub(crate) use bootstrap::{bootstrap, node_object};
pub(crate) use view::pod_amounts;

use queue::{Item, Queue};
use view::View;

/// How long a controller waits after a failure.
const RETRY: Duration = Duration::from_secs(1);
/// How much work is done before others may run.
const SLICE: usize = 8;
/// The same for a cluster that cannot keep up: those who ask it for more wait longer, as they do for a busy one.
const LONG_SLICE: usize = 512;
/// A cluster that is behind by so much cannot keep up.
const BEHIND: Duration = Duration::from_millis(50);
/// Objects are kept as values for so long after the last work.
const AWAKE: Duration = Duration::from_secs(5);

/// A change, with its object decoded once for all controllers.
struct Seen {
    table: Arc<str>,
    key: ObjectKey,
    kind: EventKind,
    object: Arc<Value>,
}

/// What a controller does with its cluster.
trait Controller: Send {
    /// As field manager and in events.
    fn name(&self) -> &'static str;

    /// Notes a change and says what is to be looked at.
    fn observe(&mut self, seen: &Seen, view: &View, queue: &mut Queue);

    /// Brings one thing closer to what it should be; says when to look again.
    fn reconcile(&mut self, item: &Item, api: &mut Api, view: &View) -> Result<Option<Duration>, ApiError>;
}

/// Runs the controllers of a cluster until the task is dropped.
pub(crate) async fn run(api: Arc<Mutex<Api>>, config: ClusterConfig) {
    let changed = api.lock().unwrap_or_else(PoisonError::into_inner).store.journal_changed();
    let mut manager = Manager::new(&config);
    let mut last = Instant::now();
    loop {
        let (done, awake) = {
            let mut api = in_turn(&api).await;
            let done = manager.work(&mut api);
            match done {
                Done::Nothing if last.elapsed() >= AWAKE => api.store.rest(),
                Done::Nothing => {}
                Done::All | Done::Some => last = Instant::now(),
            }
            (done, api.store.is_awake())
        };
        if done == Done::Some {
            tokio::task::yield_now().await;
            continue;
        }
        let rest = awake.then_some(last + AWAKE);
        match manager.queue.next_due().into_iter().chain(rest).min() {
            Some(due) => tokio::select! {
                biased;
                () = changed.notified() => {}
                () = tokio::time::sleep_until(due) => {}
            },
            None => changed.notified().await,
        }
    }
}

/// How much was done of what was due.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Done {
    Nothing,
    All,
    Some,
}

struct Manager {
    controllers: Vec<Box<dyn Controller>>,
    view: View,
    queue: Queue,
}

impl Manager {
    fn new(config: &ClusterConfig) -> Self {
        let mut controllers: Vec<Box<dyn Controller>> = vec![
            Box::new(definitions::Definitions),
            Box::new(namespaces::Namespaces),
            Box::new(garbage::Garbage::default()),
            Box::new(deployment::Deployments),
            Box::new(replicaset::ReplicaSets),
            Box::new(job::Jobs),
            Box::new(daemonset::DaemonSets::default()),
            Box::new(nodes::Nodes::new(config)),
            Box::new(scheduler::Scheduler::default()),
            Box::new(kubelet::Kubelet::new(config)),
            Box::new(endpoints::Endpoints::default()),
            Box::new(disruption::Disruption::default()),
            Box::new(signing::Signing),
            Box::new(quota::Quotas::default()),
            Box::new(volumes::Volumes),
        ];
        if config.stateful_sets {
            controllers.push(Box::new(statefulset::StatefulSets));
        }
        Self { queue: Queue::new(controllers.len()), controllers, view: View::default() }
    }

    /// Does a slice of what is due.
    fn work(&mut self, api: &mut Api) -> Done {
        let mut done = if self.drain(api) { Done::All } else { Done::Nothing };
        let behind = self.queue.next_due().is_some_and(|due| due.elapsed() >= BEHIND);
        for _ in 0..if behind { LONG_SLICE } else { SLICE } {
            let Some((controller, item)) = self.queue.pop_due(Instant::now()) else { return done };
            done = Done::All;
            let Some(acting) = self.controllers.get_mut(controller) else { continue };
            match acting.reconcile(&item, api, &self.view) {
                Ok(Some(after)) => self.queue.add_after(controller, item, after),
                Ok(None) => {}
                Err(error) => {
                    let text = format!("{} on {item}: {error}", acting.name());
                    api.log.record(api.now(), &api.cluster, &text, &[]);
                    self.queue.add_after(controller, item, RETRY);
                }
            }
            self.drain(api);
        }
        Done::Some
    }

    /// Shows every change to the view, then to each controller; answers whether there was any.
    fn drain(&mut self, api: &mut Api) -> bool {
        let mut any = false;
        while let Some((table, event)) = api.store.next_change() {
            let (key, object) = (event.object.key.clone(), event.object.value());
            let seen = Seen { table, key, kind: event.kind, object };
            // Events are told once, and nobody acts on them.
            if &*seen.table == "/events" {
                event.object.forget();
            }
            self.view.update(&seen);
            for (index, controller) in self.controllers.iter_mut().enumerate() {
                self.queue.acting(index);
                controller.observe(&seen, &self.view, &mut self.queue);
            }
            any = true;
        }
        any
    }
}

/// A text inside an object; empty if there is none.
fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    at(object, pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A number inside an object; zero if there is none.
fn number(object: &Value, pointer: &str) -> i64 {
    at(object, pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// True if the object is being deleted.
fn deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// The reference to the owner that controls an object.
fn controller_of(object: &Value) -> Option<&Value> {
    let owners = at(object, "/metadata/ownerReferences").and_then(Value::as_array)?;
    owners.iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true)))
}

/// The reference that makes `owner` control another object.
fn control_reference(owner: &Value) -> Value {
    serde_json::json!({
        "apiVersion": owner.get("apiVersion"),
        "kind": owner.get("kind"),
        "name": text(owner, "/metadata/name"),
        "uid": text(owner, "/metadata/uid"),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Sets a condition of a pod: it tells which generation it is about.
pub(crate) fn set_pod_condition(pod: &mut Value, mut condition: Value, time: &Value) {
    let generation = at(pod, "/status/observedGeneration").or_else(|| at(pod, "/metadata/generation"));
    if let Some(generation) = generation {
        condition["observedGeneration"] = generation.clone();
    }
    set_condition(&mut pod["status"], condition, time);
}

/// Sets a condition; its transition time moves only with its status.
fn set_condition(status: &mut Value, mut condition: Value, time: &Value) {
    if !status.is_object() {
        *status = serde_json::json!({});
    }
    if !status["conditions"].is_array() {
        status["conditions"] = serde_json::json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else { return };
    let kind = condition.get("type").cloned();
    let existing = conditions.iter_mut().find(|found| found.get("type") == kind.as_ref());
    match existing {
        Some(found) => {
            let same = found.get("status") == condition.get("status");
            let old_time = found.get("lastTransitionTime").cloned();
            condition["lastTransitionTime"] =
                if same { old_time.unwrap_or_else(|| time.clone()) } else { time.clone() };
            let keep_update_time = condition.get("lastUpdateTime").is_some()
                && same
                && ["reason", "message"].iter().all(|field| found.get(*field) == condition.get(*field));
            if keep_update_time && let Some(old) = found.get("lastUpdateTime") {
                condition["lastUpdateTime"] = old.clone();
            }
            *found = condition;
        }
        None => {
            condition["lastTransitionTime"] = time.clone();
            conditions.push(condition);
        }
    }
}
