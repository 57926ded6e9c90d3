//! What is known of one kind in one cluster: an ordered index, fed by a watch.

use crate::watch::follow_with;
use crate::{Change, Key, Seed, WatchHealth};
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

    /// All objects, in order, if a whole list has been seen. Both are of the same moment.
    #[must_use]
    pub fn all_if_synced(&self) -> Option<Vec<(Key, Arc<T>)>> {
        let state = self.read();
        let all = || state.objects.iter().map(|(key, object)| (key.clone(), Arc::clone(object))).collect();
        state.synced.then(all)
    }

    /// What `pick` makes of each object, in order, if a whole list has been seen. Both are of the same moment.
    pub fn filter_map_if_synced<R>(&self, mut pick: impl FnMut(&Key, &T) -> Option<R>) -> Option<Vec<R>> {
        let state = self.read();
        let picked = || state.objects.iter().filter_map(|(key, object)| pick(key, object)).collect();
        state.synced.then(picked)
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

    /// Takes a change; answers the keys of objects that were created, changed, deleted or listed again.
    pub fn take(&self, change: Change<T>) -> Vec<Key> {
        self.replace(change).into_iter().map(|changed| changed.key).collect()
    }

    /// Takes a change; answers what each object was and is now.
    ///
    /// What can be read again stops being unreadable once it is here, and before anybody is told.
    pub fn replace(&self, change: Change<T>) -> Vec<Changed<T>> {
        let mut state = self.write();
        match change {
            Change::Set(key, object) => {
                let after = Arc::new(object);
                let before = state.objects.insert(key.clone(), Arc::clone(&after));
                self.health.forget_unreadable(&key);
                vec![Changed { key, before, after: Some(after) }]
            }
            Change::Gone(key) => {
                let before = state.objects.remove(&key);
                vec![Changed { key, before, after: None }]
            }
            Change::Listed(listed) => {
                let listed = listed.into_iter().map(|(key, object)| (key, Arc::new(object))).collect();
                let mut past = std::mem::replace(&mut state.objects, listed);
                let present = state.objects.iter().map(|(key, after)| Changed {
                    key: key.clone(),
                    before: past.remove(key),
                    after: Some(Arc::clone(after)),
                });
                let mut all: Vec<Changed<T>> = present.collect();
                all.extend(past.into_iter().map(|(key, gone)| Changed {
                    key,
                    before: Some(gone),
                    after: None,
                }));
                state.synced = true;
                self.health.settle_unreadable();
                all
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

/// An object that was created, changed, deleted or listed again.
#[derive(Debug)]
pub struct Changed<T> {
    /// Its key.
    pub key: Key,
    /// What was known of it.
    pub before: Option<Arc<T>>,
    /// What is known of it now; nothing if it is gone.
    pub after: Option<Arc<T>>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_comes_meanwhile_is_seen_whole_or_not_at_all() {
        for _ in 0..2000 {
            let index = Index::<u32>::default();
            let writer = index.clone();
            let list = std::thread::spawn(move || {
                let one = BTreeMap::from([(Key::cluster("a"), 1)]);
                writer.replace(Change::Listed(one));
            });
            let seen = (0..50).find_map(|_| index.all_if_synced());
            list.join().unwrap();
            assert!(seen.is_none_or(|seen| seen.len() == 1));
        }
    }

    #[test]
    fn a_change_tells_what_was_and_what_is() {
        let index = Index::<u32>::default();
        let told = |change| -> Vec<(String, Option<u32>, Option<u32>)> {
            let all = index.replace(change).into_iter();
            all.map(|each| (each.key.name, each.before.map(|it| *it), each.after.map(|it| *it))).collect()
        };
        let key = Key::cluster;
        let row = |name: &str, before, after| (name.to_owned(), before, after);
        assert_eq!(told(Change::Set(key("a"), 1)), [row("a", None, Some(1))]);
        let list = BTreeMap::from([(key("a"), 2), (key("b"), 3)]);
        assert_eq!(told(Change::Listed(list)), [row("a", Some(1), Some(2)), row("b", None, Some(3))]);
        let list = BTreeMap::from([(key("b"), 3)]);
        assert_eq!(told(Change::Listed(list)), [row("b", Some(3), Some(3)), row("a", Some(2), None)]);
        assert_eq!(told(Change::Gone(key("b"))), [row("b", Some(3), None)]);
    }
}
