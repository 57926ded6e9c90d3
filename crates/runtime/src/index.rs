//! What is known of one kind in one cluster: an ordered index, fed by a watch.

use crate::watch::follow_with;
use crate::{Key, Seed, WatchHealth};
use kube::runtime::watcher;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Objects of one kind by key, each projected to what its users need.
///
/// Filled by [`feed`]. A watch that breaks leaves what was known in place: silence is not absence.
#[derive(Debug)]
pub struct Index<T> {
    state: Arc<RwLock<State<T>>>,
    health: WatchHealth,
}

#[derive(Debug)]
struct State<T> {
    objects: BTreeMap<Key, Arc<T>>,
    synced: bool,
}

impl<T> Clone for Index<T> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state), health: self.health.clone() }
    }
}

impl<T> Default for Index<T> {
    fn default() -> Self {
        Self::fed_by(WatchHealth::default())
    }
}

impl<T> Index<T> {
    /// An empty index that a watch of this health will feed.
    #[must_use]
    pub fn fed_by(health: WatchHealth) -> Self {
        let state = State { objects: BTreeMap::new(), synced: false };
        Self { state: Arc::new(RwLock::new(state)), health }
    }

    /// How the watch stands that feeds it.
    #[must_use]
    pub fn health(&self) -> &WatchHealth {
        &self.health
    }

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

    /// Calls `visit` for every object of a namespace, in order.
    pub fn for_each_in(&self, namespace: &str, mut visit: impl FnMut(&Key, &T)) {
        let state = self.read();
        let from = state.objects.range(Key::new(namespace, "")..);
        for (key, object) in from.take_while(|(key, _)| key.namespace == namespace) {
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

    /// Takes a change; answers the keys that came, went or were told again.
    ///
    /// What can be read again stops being unreadable once it is here, and before anybody is told.
    pub fn take(&self, change: Change<T>) -> Vec<Key> {
        let mut state = self.write();
        match change {
            Change::Set(key, object) => {
                state.objects.insert(key.clone(), Arc::new(object));
                self.health.forget_unreadable(&key);
                vec![key]
            }
            Change::Gone(key) => {
                state.objects.remove(&key);
                vec![key]
            }
            Change::Listed(listed) => {
                let gone = state.objects.keys().filter(|key| !listed.contains_key(key)).cloned();
                let touched = gone.chain(listed.keys().cloned()).collect();
                state.objects = listed.into_iter().map(|(key, object)| (key, Arc::new(object))).collect();
                state.synced = true;
                self.health.settle_unreadable();
                touched
            }
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, State<T>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<T>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a watch tells.
#[derive(Debug)]
pub enum Change<T> {
    /// An object is new or has changed.
    Set(Key, T),
    /// An object is gone.
    Gone(Key),
    /// These are all objects that there are.
    Listed(BTreeMap<Key, T>),
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
    let health = index.health.clone();
    let take = |change| index.take(change).iter().for_each(&touched);
    follow_with(api, config, project, take, seed, health).await;
}

/// Tells all changes of a kind in a cluster, for ever; as [`follow_with`], for those who do not ask how the watch stands.
pub async fn follow<K, T>(
    api: Api<K>,
    config: watcher::Config,
    project: impl Fn(K) -> T,
    tell: impl FnMut(Change<T>),
    seed: Seed,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    follow_with(api, config, project, tell, seed, WatchHealth::default()).await;
}
