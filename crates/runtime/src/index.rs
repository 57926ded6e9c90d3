//! What is known of one kind in one cluster: an ordered index, fed by a watch.

use crate::{Backoff, Key, Seed, queue::chain};
use futures::StreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Objects of one kind by key, each projected to what its users need.
///
/// Filled by [`feed`]. A watch that breaks leaves what was known in place: silence is not absence.
#[derive(Debug)]
pub struct Index<T> {
    state: Arc<RwLock<State<T>>>,
}

#[derive(Debug)]
struct State<T> {
    objects: BTreeMap<Key, Arc<T>>,
    synced: bool,
}

impl<T> Clone for Index<T> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state) }
    }
}

impl<T> Default for Index<T> {
    fn default() -> Self {
        Self { state: Arc::new(RwLock::new(State { objects: BTreeMap::new(), synced: false })) }
    }
}

impl<T> Index<T> {
    /// The object, if it is known.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Arc<T>> {
        self.read().objects.get(key).cloned()
    }

    /// All objects, in order.
    #[must_use]
    pub fn all(&self) -> Vec<(Key, Arc<T>)> {
        self.read().objects.iter().map(|(key, object)| (key.clone(), Arc::clone(object))).collect()
    }

    /// Calls `visit` for every object, in order, without copying the index.
    pub fn for_each(&self, mut visit: impl FnMut(&Key, &T)) {
        for (key, object) in &self.read().objects {
            visit(key, object);
        }
    }

    /// How many objects are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    /// Whether no object is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a whole list has been seen: only then does an absent object mean anything.
    #[must_use]
    pub fn synced(&self) -> bool {
        self.read().synced
    }

    fn insert(&self, key: Key, object: T) {
        self.write().objects.insert(key, Arc::new(object));
    }

    fn remove(&self, key: &Key) {
        self.write().objects.remove(key);
    }

    /// Takes a whole list at once; answers the keys that came, went or were listed again.
    fn replace(&self, listed: BTreeMap<Key, Arc<T>>) -> Vec<Key> {
        let mut state = self.write();
        let gone = state.objects.keys().filter(|key| !listed.contains_key(key)).cloned();
        let touched = gone.chain(listed.keys().cloned()).collect();
        state.objects = listed;
        state.synced = true;
        touched
    }

    fn read(&self) -> RwLockReadGuard<'_, State<T>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<T>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps `index` as the API server has it, for ever, and calls `touched` after each change.
///
/// `project` keeps of each object what is needed and lets the rest go. A watch that fails is opened again with backoff.
pub async fn feed<K, T>(
    api: Api<K>,
    config: watcher::Config,
    project: impl Fn(K) -> T,
    index: Index<T>,
    touched: impl Fn(&Key),
    seed: Seed,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut backoff = Backoff::new(seed);
    let mut listed = BTreeMap::new();
    let mut events = pin!(watcher(api.clone(), config));
    while let Some(event) = events.next().await {
        if event.is_ok() {
            backoff.succeeded();
        }
        match event {
            Ok(Event::Apply(object)) => {
                let key = Key::of(&object);
                index.insert(key.clone(), project(object));
                touched(&key);
            }
            Ok(Event::Delete(object)) => {
                let key = Key::of(&object);
                index.remove(&key);
                touched(&key);
            }
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => {
                listed.insert(Key::of(&object), Arc::new(project(object)));
            }
            Ok(Event::InitDone) => {
                for key in index.replace(std::mem::take(&mut listed)) {
                    touched(&key);
                }
            }
            Err(error) => {
                let wait = backoff.failed();
                tracing::debug!(resource = api.resource_url(), error = %chain(&error), ?wait, "watch failed");
                tokio::time::sleep(wait).await;
            }
        }
    }
}
