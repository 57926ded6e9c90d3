//! How a watch stands: listed, fresh or failing, and what it could not read.

use crate::{Key, foreign_text};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// So many objects that cannot be read are named; of more, only the number is known.
const NAMED: usize = 1000;

/// A list of parts that is newer by this is told of.
const NEWS_AFTER: Duration = Duration::from_secs(1);

/// How often the log tells of an object that cannot be read: whoever writes such objects must not fill it.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// The health of one watch; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct WatchHealth {
    state: Arc<Mutex<State>>,
    /// Told when a list has been taken, and when the watch begins to fail or recovers.
    changed: Arc<Notify>,
    refresh: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    listed: Option<Instant>,
    confirmed: Option<Instant>,
    failure: Option<WatchFailure>,
    unreadable: BTreeMap<Key, Unreadable>,
    /// Those of them that a list can read again, until it is taken.
    readable_again: BTreeSet<Key>,
    unnamed: usize,
    /// When one of them was last told in the log, and how many were not since then.
    said: Option<Instant>,
    unsaid: usize,
}

/// A watch that fails.
#[derive(Clone, Debug)]
pub struct WatchFailure {
    /// Since when nothing else has come of it.
    pub since: Instant,
    /// What came of it last, in one line.
    pub error: String,
    /// Whether the API server does not serve the kind: then there is nothing of it.
    pub is_not_served: bool,
    /// Whether the API server does not let us look.
    pub is_forbidden: bool,
}

/// An object that is there and cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Its uid, if that can be read.
    pub uid: Option<String>,
    /// Why it cannot be read, in one line.
    pub problem: String,
}

impl WatchHealth {
    /// The health of a watch that has not begun. `changed` is told of its ups and downs.
    #[must_use]
    pub fn telling(changed: Arc<Notify>) -> Self {
        Self { changed, ..Self::default() }
    }

    /// Whether a whole list has been taken.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.lock().listed.is_some()
    }

    /// How long ago the API server was last heard on this watch: a list, an event, a bookmark.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        self.lock().confirmed.map(|at| at.elapsed())
    }

    /// Whether a whole list has been taken since then. Events do not tell that: a connection that hung may bring those
    /// of the past.
    #[must_use]
    pub fn is_listed_since(&self, then: Instant) -> bool {
        self.lock().listed.is_some_and(|at| at >= then)
    }

    /// How it fails, if it does.
    #[must_use]
    pub fn failure(&self) -> Option<WatchFailure> {
        self.lock().failure.clone()
    }

    /// Whether nothing was ever listed since the API server does not serve the kind: its definition is not installed.
    #[must_use]
    pub fn is_not_served(&self) -> bool {
        let state = self.lock();
        state.listed.is_none() && state.failure.as_ref().is_some_and(|failure| failure.is_not_served)
    }

    /// Whether nothing was ever listed since we may not look.
    pub(crate) fn is_closed(&self) -> bool {
        let state = self.lock();
        state.listed.is_none() && state.failure.as_ref().is_some_and(|failure| failure.is_forbidden)
    }

    /// Stands as the parts stand that are watched instead of the whole: as old as the oldest of them, and failing as the first
    /// that fails. Without any, there is nothing to be heard.
    pub(crate) fn gather<'a>(&self, parts: impl Iterator<Item = &'a Self>) {
        let now = Instant::now();
        let (mut listed, mut confirmed, mut failure) = (Some(now), Some(now), None);
        let (mut unreadable, mut unnamed) = (BTreeMap::new(), 0);
        for part in parts {
            let part = part.lock();
            // Nothing is less than any time.
            (listed, confirmed) = (listed.min(part.listed), confirmed.min(part.confirmed));
            failure = failure.or_else(|| part.failure.clone());
            unreadable.extend(part.unreadable.iter().map(|(key, each)| (key.clone(), each.clone())));
            unnamed += part.unnamed;
        }
        let mut state = self.lock();
        let error = |failure: &Option<WatchFailure>| failure.as_ref().map(|failure| failure.error.clone());
        // How long ago it was listed is no news as long as it was.
        let news = state.listed.is_some() != listed.is_some()
            || state.listed.zip(listed).is_some_and(|(before, after)| after > before + NEWS_AFTER)
            || error(&state.failure) != error(&failure);
        let confirmed = confirmed.max(state.confirmed);
        *state = State { listed, confirmed, failure, unreadable, unnamed, ..std::mem::take(&mut *state) };
        drop(state);
        if news {
            self.changed.notify_one();
        }
    }

    /// Why the object of this key cannot be read, if it is there and cannot.
    #[must_use]
    pub fn unreadable(&self, key: &Key) -> Option<Unreadable> {
        self.lock().unreadable.get(key).cloned()
    }

    /// The objects that cannot be read, as far as they are named.
    #[must_use]
    pub fn all_unreadable(&self) -> Vec<(Key, Unreadable)> {
        self.lock().unreadable.iter().map(|(key, each)| (key.clone(), each.clone())).collect()
    }

    /// The uids of the objects that cannot be read, as far as they are named.
    #[must_use]
    pub fn unreadable_uids(&self) -> BTreeSet<String> {
        self.lock().unreadable.values().filter_map(|each| each.uid.clone()).collect()
    }

    /// How many objects cannot be read.
    #[must_use]
    pub fn count_unreadable(&self) -> usize {
        let state = self.lock();
        state.unreadable.len() + state.unnamed
    }

    /// Has everything listed anew: what is known through the connection that the watch uses may be outdated.
    pub fn refresh(&self) {
        self.refresh.notify_one();
    }

    pub(crate) async fn until_refresh(&self) {
        self.refresh.notified().await;
    }

    pub(crate) fn confirm(&self) {
        let mut state = self.lock();
        state.confirmed = Some(Instant::now());
        if state.failure.take().is_some() {
            drop(state);
            self.changed.notify_one();
        }
    }

    /// The whole list has been taken.
    pub fn listed(&self) {
        self.confirm();
        self.lock().listed = Some(Instant::now());
        self.changed.notify_one();
    }

    /// It failed once more; answers whether that is news.
    pub fn fail(&self, error: &str, is_not_served: bool, is_forbidden: bool) -> bool {
        let mut state = self.lock();
        let before = state.failure.as_ref();
        let news = before.is_none_or(|before| before.error != error);
        let since = before.map_or_else(Instant::now, |before| before.since);
        state.failure = Some(WatchFailure { since, error: error.to_owned(), is_not_served, is_forbidden });
        drop(state);
        if news {
            self.changed.notify_one();
        }
        news
    }

    /// These are all objects of a list that cannot be read. What it can read again counts as unreadable until it is
    /// known: what is neither is gone.
    pub(crate) fn take_unreadable(
        &self,
        mut all: BTreeMap<Key, Unreadable>,
        unnamed: usize,
        is_listed: impl Fn(&Key) -> bool,
    ) {
        let mut state = self.lock();
        for (key, before) in std::mem::take(&mut state.unreadable) {
            if !all.contains_key(&key) && is_listed(&key) {
                state.readable_again.insert(key.clone());
                all.insert(key, before);
            }
        }
        (state.unreadable, state.unnamed) = (all, unnamed);
    }

    /// The objects of the list are known.
    pub(crate) fn settle_unreadable(&self) {
        let mut state = self.lock();
        for key in std::mem::take(&mut state.readable_again) {
            state.unreadable.remove(&key);
        }
    }

    /// An object cannot be read; answers whether that is news.
    pub(crate) fn add_unreadable(&self, key: Key, unreadable: Unreadable) -> bool {
        let mut state = self.lock();
        if state.unreadable.len() >= NAMED && !state.unreadable.contains_key(&key) {
            return false;
        }
        state.unreadable.insert(key, unreadable.clone()).is_none_or(|before| before != unreadable)
    }

    /// Whether the log may tell of one more that cannot be read; if so, answers of how many it did not tell meanwhile.
    pub(crate) fn may_say_unreadable(&self) -> Option<usize> {
        let mut state = self.lock();
        if state.said.is_some_and(|at| at.elapsed() < SAY_EVERY) {
            state.unsaid += 1;
            return None;
        }
        state.said = Some(Instant::now());
        Some(std::mem::take(&mut state.unsaid))
    }

    pub(crate) fn forget_unreadable(&self, key: &Key) {
        self.lock().unreadable.remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Unreadable {
    pub(crate) fn new(uid: Option<String>, problem: &str) -> Self {
        Self { uid, problem: foreign_text(problem) }
    }

    /// Whether one more of so many is named.
    pub(crate) fn is_named(count: usize) -> bool {
        count < NAMED
    }
}
