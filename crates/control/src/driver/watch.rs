//! The watch of a kind in the hub.

use crate::copies::Kind;
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_runtime::{Change, Index, Key, Queue, Seed, follow_with};
use std::time::Duration;

/// When to look at an object that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delay {
    /// Not before this long has passed.
    pub(crate) from: Duration,
    /// Before anything that is due later.
    pub(crate) at_last: Duration,
}

impl Delay {
    /// At once.
    pub(crate) const NONE: Self = Self { from: Duration::ZERO, at_last: Duration::ZERO };
}

/// Keeps the objects of a kind known, for ever. A change is given to `first`, which answers when the object is to be
/// looked at; then it is indexed; then `changed` is called.
pub(crate) fn watch<K, T>(
    hub: &Client,
    project: impl Fn(K) -> T + Send + 'static,
    index: &Index<T>,
    queue: &Queue<Key>,
    first: impl Fn(&Change<T>) -> Delay + Send + 'static,
    changed: impl Fn(&Key) + Send + 'static,
    seed: Seed,
) -> impl Future<Output = ()> + Send + 'static
where
    K: Kind + Send + Sync + 'static,
    T: Send + Sync + 'static,
{
    let (index, queue, health) = (index.clone(), queue.clone(), index.health().clone());
    let take = move |change| {
        let delay = first(&change);
        let is_listed = matches!(change, Change::Listed(_));
        for key in index.take(change) {
            changed(&key);
            queue.add_within(key, delay.from, delay.at_last);
        }
        if is_listed {
            index.health().all_unreadable().into_iter().for_each(|(key, _)| queue.add(key));
        }
    };
    // Who wrote which field is half of an object's size, and nobody here asks for it. A write without it keeps it.
    let lean = move |mut object: K| {
        object.meta_mut().managed_fields = None;
        project(object)
    };
    follow_with(Api::<K>::all(hub.clone()), watcher::Config::default(), lean, take, seed, health)
}
