//! What objects went through: watches that forget nothing.

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The kinds that are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Deployment,
    ReplicaSet,
    Pod,
    Job,
    Budget,
    Node,
}

impl Kind {
    const ALL: [Self; 6] =
        [Self::Deployment, Self::ReplicaSet, Self::Pod, Self::Job, Self::Budget, Self::Node];

    fn api(self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        let (group, version, kind) = match self {
            Self::Deployment => ("apps", "v1", "Deployment"),
            Self::ReplicaSet => ("apps", "v1", "ReplicaSet"),
            Self::Pod => ("", "v1", "Pod"),
            Self::Job => ("batch", "v1", "Job"),
            Self::Budget => ("policy", "v1", "PodDisruptionBudget"),
            Self::Node => ("", "v1", "Node"),
        };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match self {
            Self::Node => Api::all_with(client.clone(), &resource),
            _ => Api::namespaced_with(client.clone(), namespace, &resource),
        }
    }
}

/// What one object went through since the last [`Recorder::take`].
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) kind: Kind,
    /// As it was before; none if it was not there.
    pub(super) before: Option<Value>,
    /// Every state since.
    pub(super) states: Vec<Value>,
    pub(super) gone: bool,
}

impl Life {
    /// All states, the one before among them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Value> {
        self.before.iter().chain(&self.states)
    }

    /// The last state.
    pub(super) fn last(&self) -> Option<&Value> {
        self.states.last().or(self.before.as_ref())
    }
}

struct Seen {
    lives: BTreeMap<(Kind, String), Life>,
    last_change: Instant,
    failure: Option<String>,
}

/// Watches everything in one namespace, and the nodes.
pub(super) struct Recorder {
    seen: Arc<Mutex<Seen>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Recorder {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Recorder {
    /// Begins to watch.
    pub(super) async fn start(client: &Client, namespace: &str) -> Result<Self> {
        let seen =
            Arc::new(Mutex::new(Seen { lives: BTreeMap::new(), last_change: Instant::now(), failure: None }));
        let mut tasks = Vec::new();
        for kind in Kind::ALL {
            let api = kind.api(client, namespace);
            let list = api.list(&ListParams::default()).await.with_context(|| format!("list of {kind:?}"))?;
            let version = list.metadata.resource_version.clone().context("a list without a version")?;
            for object in list.items {
                note(&seen, kind, &object, false);
            }
            let seen = seen.clone();
            tasks.push(tokio::spawn(async move {
                if let Err(error) = watch(&api, &version, kind, &seen).await {
                    lock(&seen).failure = Some(format!("watch of {kind:?}: {error:#}"));
                }
            }));
        }
        Ok(Self { seen, tasks })
    }

    /// The objects as they are.
    pub(super) fn present(&self, kind: Kind) -> Vec<Value> {
        let seen = lock(&self.seen);
        let alive = seen.lives.values().filter(|life| life.kind == kind && !life.gone);
        alive.filter_map(|life| life.last().cloned()).collect()
    }

    /// Since when nothing has happened.
    pub(super) fn last_change(&self) -> Result<Instant> {
        let seen = lock(&self.seen);
        match &seen.failure {
            Some(failure) => anyhow::bail!("{failure}"),
            None => Ok(seen.last_change),
        }
    }

    /// What all objects went through since the last time.
    pub(super) fn take(&self) -> Vec<Life> {
        let mut seen = lock(&self.seen);
        let taken: Vec<Life> = seen.lives.values().cloned().collect();
        seen.lives.retain(|_, life| !life.gone);
        for life in seen.lives.values_mut() {
            life.before = life.last().cloned();
            life.states.clear();
        }
        taken
    }
}

fn lock(seen: &Arc<Mutex<Seen>>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn watch(api: &Api<DynamicObject>, version: &str, kind: Kind, seen: &Arc<Mutex<Seen>>) -> Result<()> {
    let mut events = api.watch(&WatchParams::default().timeout(290), version).await?.boxed();
    while let Some(event) = events.try_next().await? {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => note(seen, kind, &object, false),
            WatchEvent::Deleted(object) => note(seen, kind, &object, true),
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(status) => anyhow::bail!("{status:?}"),
        }
    }
    anyhow::bail!("it ended")
}

fn note(seen: &Arc<Mutex<Seen>>, kind: Kind, object: &DynamicObject, gone: bool) {
    let uid = object.metadata.uid.clone().unwrap_or_default();
    let value = serde_json::to_value(object).unwrap_or_default();
    let mut seen = lock(seen);
    seen.last_change = Instant::now();
    let life = seen.lives.entry((kind, uid)).or_insert_with(|| Life {
        kind,
        before: None,
        states: Vec::new(),
        gone: false,
    });
    life.gone = gone;
    // What a deletion shows is the last state once more, and sometimes its last write.
    life.states.push(value);
}
