//! Watches a kind in some places of a cluster, where nobody may watch all of it.

use crate::{Change, Followed, Key, Published, Seed, WatchHealth, follow_with};
use kube::runtime::watcher::Config;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;

/// How often to look how the parts stand without any news of them.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The places in which a kind is watched; nothing until they are known.
pub type Places = Option<BTreeSet<String>>;

/// Tells all changes of a kind in the places that there are at the time, for ever, as [`follow_with`](crate::follow_with) does for
/// all of it. `api` says how a place is watched.
///
/// A place that may not be looked at and never could be has nothing. What is known of a place that is no place any more
/// stands: nobody looks, and silence is not absence.
pub async fn follow_places<K, T>(
    places: Published<Places>,
    api: impl Fn(&str) -> (Api<K>, Config),
    project: fn(K) -> T,
    mut tell: impl FnMut(Change<T>),
    seed: Seed,
    health: WatchHealth,
) where
    K: Resource + DeserializeOwned + Debug + Send + 'static,
    T: Send + 'static,
{
    let (send, mut news) = mpsc::unbounded_channel::<(String, Change<T>)>();
    let changed = Arc::<Notify>::default();
    let mut parts: BTreeMap<String, Part> = BTreeMap::new();
    let mut merged = Merged::default();
    let mut followed = Followed::default();
    loop {
        tokio::select! {
            biased;
            wanted = places.next(&mut followed) => {
                let wanted = wanted.unwrap_or_default();
                parts.retain(|name, _| wanted.contains(name));
                for name in wanted.iter().filter(|name| !parts.contains_key(*name)).cloned().collect::<Vec<_>>() {
                    let own = WatchHealth::telling(Arc::clone(&changed));
                    let ((api, config), send) = (api(&name), send.clone());
                    let told = name.clone();
                    // Nobody listens any more when this ends.
                    let tell = move |change| _ = send.send((told.clone(), change));
                    let follow = follow_with(api, config, project, tell, seed.child(&name), own.clone());
                    let task = tokio::spawn(follow).abort_handle();
                    parts.insert(name, Part { health: own, task });
                }
            }
            Some((name, change)) = news.recv() => {
                // What was sent before a place was given up is not of now.
                if parts.contains_key(&name) {
                    merged.take(&name, change, &mut tell);
                }
            }
            () = changed.notified() => {}
            () = health.until_refresh() => parts.values().for_each(|part| part.health.refresh()),
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        if places.get().is_some() && news.is_empty() {
            let seen = parts.iter().filter(|(_, part)| !part.health.is_closed());
            if seen.clone().all(|(_, part)| part.health.is_listed()) {
                merged.begin(&mut tell);
                health.gather(seen.map(|(_, part)| &part.health));
            }
        }
    }
}

/// The watch of one place. Dropped, it ends.
struct Part {
    health: WatchHealth,
    task: AbortHandle,
}

impl Drop for Part {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the parts have told.
struct Merged<T> {
    /// By place: what there is; nothing of a place that was never listed.
    keys: BTreeMap<String, BTreeSet<Key>>,
    /// What is told when all is known for the first time; nothing after that.
    first: Option<BTreeMap<Key, T>>,
}

impl<T> Default for Merged<T> {
    fn default() -> Self {
        Self { keys: BTreeMap::new(), first: Some(BTreeMap::new()) }
    }
}

impl<T> Merged<T> {
    fn take(&mut self, place: &str, change: Change<T>, tell: &mut impl FnMut(Change<T>)) {
        let keys = self.keys.entry(place.to_owned()).or_default();
        let mut out = Vec::new();
        match change {
            Change::Set(key, facts) => {
                keys.insert(key.clone());
                out.push(Change::Set(key, facts));
            }
            Change::Gone(key) => {
                keys.remove(&key);
                out.push(Change::Gone(key));
            }
            Change::Listed(all) => {
                let now: BTreeSet<Key> = all.keys().cloned().collect();
                out.extend(keys.difference(&now).cloned().map(Change::Gone));
                out.extend(all.into_iter().map(|(key, facts)| Change::Set(key, facts)));
                *keys = now;
            }
        }
        for change in out {
            match (&mut self.first, change) {
                (Some(first), Change::Set(key, facts)) => _ = first.insert(key, facts),
                (Some(first), Change::Gone(key)) => _ = first.remove(&key),
                (_, change) => tell(change),
            }
        }
    }

    /// All is known.
    fn begin(&mut self, tell: &mut impl FnMut(Change<T>)) {
        if let Some(first) = self.first.take() {
            tell(Change::Listed(first));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(keys: &[(&str, i32)]) -> Change<i32> {
        Change::Listed(keys.iter().map(|(name, value)| (Key::new("a", name), *value)).collect())
    }

    #[test]
    fn what_parts_tell_is_told_as_of_one_whole() {
        let mut merged = Merged::default();
        let mut told = Vec::new();
        let mut tell = |change: Change<i32>| told.push(format!("{change:?}"));
        merged.take("a", listed(&[("x", 1), ("y", 2)]), &mut tell);
        merged.take("a", listed(&[("y", 3)]), &mut tell);
        merged.begin(&mut tell);
        merged.take("a", listed(&[("z", 4)]), &mut tell);
        merged.take("b", listed(&[]), &mut tell);
        merged.begin(&mut tell);
        let key = |name: &str| format!("{:?}", Key::new("a", name));
        let whole = BTreeMap::from([(Key::new("a", "y"), 3)]);
        assert_eq!(
            told,
            [format!("Listed({whole:?})"), format!("Gone({})", key("y")), format!("Set({}, 4)", key("z")),]
        );
    }
}
