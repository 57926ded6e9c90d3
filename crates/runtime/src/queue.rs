//! What is to be looked at, and when.

use crate::call::told;
use crate::metrics::Histogram;
use crate::{Clock, FOREIGN_TEXT_LIMIT, Seed, backoff, bounded_text};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A work queue ordered by (time, key).
///
/// A key stands in it at most once, at the earliest time asked for. A key that is being worked on is not handed out
/// again; asked for meanwhile, it comes back when the work is done, so that no change is missed. A key that may wait is
/// handed out when nothing is left that may wait less.
#[derive(Clone, Debug)]
pub struct Queue<K> {
    state: Arc<Mutex<State<K>>>,
    changed: Arc<Notify>,
}

#[derive(Debug)]
struct State<K> {
    /// What may not be handed out yet, by the time from which it may.
    later: BTreeSet<(Instant, K)>,
    /// What may be handed out, by the time when it is due.
    ready: BTreeSet<(Instant, K)>,
    due: BTreeMap<K, Due>,
    working: BTreeMap<K, Working>,
    failures: BTreeMap<K, u32>,
    rng: ChaCha8Rng,
    stats: QueueStats,
}

/// What was counted of a queue.
#[derive(Clone, Debug, Default)]
pub struct QueueStats {
    /// How often a key was added that was not in it.
    pub adds: u64,
    /// How often a key was dealt with, and is not due again by itself.
    pub done: u64,
    /// How often a key was dealt with, and is to be looked at again.
    pub requeued: u64,
    /// How often a key could not be dealt with.
    pub failed: u64,
    /// How long keys were due before they were taken.
    pub latency: Histogram,
    /// How long they were worked on.
    pub work: Histogram,
}

/// How a queue stands.
#[derive(Clone, Debug)]
pub struct QueueView {
    /// How many keys are due and wait to be taken.
    pub due: usize,
    /// How many are being worked on.
    pub working: usize,
    /// How long the longest work is under way.
    pub longest: Duration,
    /// How long all of it together is.
    pub unfinished: Duration,
    /// What was counted so far.
    pub stats: QueueStats,
}

/// A key that is being worked on.
#[derive(Debug)]
struct Working {
    since: Instant,
    /// When it is to be looked at again, if that was asked for meanwhile.
    asked: Option<Due>,
}

/// When a key is to be looked at.
#[derive(Clone, Copy, Debug)]
struct Due {
    from: Instant,
    at: Instant,
}

impl Due {
    fn at(at: Instant) -> Self {
        Self { from: at, at }
    }

    /// What serves both.
    fn earlier(self, other: Self) -> Self {
        Self { from: self.from.min(other.from), at: self.at.min(other.at) }
    }
}

impl<K: Ord + Clone + Debug> Queue<K> {
    /// An empty queue whose retries are jittered by the seed.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        let state = State {
            later: BTreeSet::new(),
            ready: BTreeSet::new(),
            due: BTreeMap::new(),
            working: BTreeMap::new(),
            failures: BTreeMap::new(),
            rng: seed.rng(),
            stats: QueueStats::default(),
        };
        Self { state: Arc::new(Mutex::new(state)), changed: Arc::new(Notify::new()) }
    }

    /// Asks for the key to be looked at now.
    pub fn add(&self, key: K) {
        self.add_after(key, Duration::ZERO);
    }

    /// Asks for the key to be looked at after a while, unless it is due earlier anyway.
    pub fn add_after(&self, key: K, wait: Duration) {
        self.add_within(key, wait, wait);
    }

    /// Asks for the key to be looked at after the first time; until the second, whatever is due earlier goes first.
    pub fn add_within(&self, key: K, wait: Duration, at_last: Duration) {
        let now = Instant::now();
        self.lock().schedule(key, Due { from: now + wait, at: now + at_last.max(wait) });
        self.changed.notify_one();
    }

    /// The next key that is due; waits until there is one. Say [`Queue::done`] or [`Queue::failed`] of it.
    pub async fn next(&self) -> K {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // From here on, each change wakes a worker of its own: two that come at once are not heard as one.
            changed.as_mut().enable();
            let wait = {
                let (mut state, now) = (self.lock(), Instant::now());
                if let Some(key) = state.take(now) {
                    let more = !state.ready.is_empty();
                    drop(state);
                    if more {
                        self.changed.notify_one();
                    }
                    return key;
                }
                state.later.first().map(|(from, _)| *from)
            };
            match wait {
                Some(at) => {
                    tokio::select! { biased; () = &mut changed => {}, () = tokio::time::sleep_until(at) => {} }
                }
                None => changed.await,
            }
        }
    }

    /// The key was dealt with; its failures are forgotten.
    pub fn done(&self, key: &K) {
        self.finish(key, |state| {
            state.failures.remove(key);
            state.stats.done += 1;
            None
        });
    }

    /// The key was dealt with, and is to be looked at again after this long; its failures are forgotten.
    pub fn done_until(&self, key: K, wait: Duration) {
        self.finish(&key, |state| {
            state.failures.remove(&key);
            state.stats.requeued += 1;
            None
        });
        self.add_after(key, wait);
    }

    /// The key could not be dealt with; it comes back after a backoff, which is returned.
    pub fn failed(&self, key: &K) -> Duration {
        let mut wait = Duration::ZERO;
        self.finish(key, |state| {
            let failures = state.failures.entry(key.clone()).or_insert(0);
            *failures = failures.saturating_add(1);
            let failures = *failures;
            state.stats.failed += 1;
            wait = backoff::delay(failures, &mut state.rng);
            Some(Due::at(Instant::now() + wait))
        });
        wait
    }

    /// By how much the queue is behind: how long ago that was due which is taken next, or how long the longest work is
    /// under way.
    #[must_use]
    pub fn behind(&self) -> Duration {
        let late = self.lock().first_ready(Instant::now()).map_or(Duration::ZERO, |(at, _)| at.elapsed());
        late.max(self.under_way())
    }

    /// For how long the longest work is under way: the longer, the busier are those whom it waits for.
    #[must_use]
    pub fn under_way(&self) -> Duration {
        let since = self.lock().working.values().map(|working| working.since).min();
        since.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// How it stands, for those who watch over it.
    #[must_use]
    pub fn view(&self) -> QueueView {
        let (state, now) = (self.lock(), Instant::now());
        let since = state.working.values().map(|working| now.saturating_duration_since(working.since));
        QueueView {
            due: state.ready.len() + state.later.iter().take_while(|(from, _)| *from <= now).count(),
            working: state.working.len(),
            longest: since.clone().max().unwrap_or_default(),
            unfinished: since.sum(),
            stats: state.stats.clone(),
        }
    }

    /// How many keys wait or are being worked on.
    #[must_use]
    pub fn len(&self) -> usize {
        let state = self.lock();
        state.due.len() + state.working.len()
    }

    /// Whether nothing waits and nothing is being worked on.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn finish(&self, key: &K, retry: impl FnOnce(&mut State<K>) -> Option<Due>) {
        let mut state = self.lock();
        let working = state.working.remove(key);
        if let Some(working) = &working {
            state.stats.work.observe(working.since.elapsed());
        }
        let retry = retry(&mut state);
        // A change seen during the work is a reason to look at once; a failure alone waits.
        match (working.and_then(|working| working.asked), retry) {
            (Some(asked), _) => state.insert(key.clone(), asked),
            (None, Some(retry)) => state.schedule(key.clone(), retry),
            (None, None) => return,
        }
        drop(state);
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord + Clone> State<K> {
    fn schedule(&mut self, key: K, due: Due) {
        if let Some(working) = self.working.get_mut(&key) {
            self.stats.adds += u64::from(working.asked.is_none());
            working.asked = Some(working.asked.map_or(due, |before| before.earlier(due)));
            return;
        }
        let before = self.remove(&key);
        self.stats.adds += u64::from(before.is_none());
        self.insert(key, before.map_or(due, |before| before.earlier(due)));
    }

    /// Puts a key in that is not in it.
    fn insert(&mut self, key: K, due: Due) {
        self.due.insert(key.clone(), due);
        self.later.insert((due.from, key));
    }

    fn remove(&mut self, key: &K) -> Option<Due> {
        let due = self.due.remove(key)?;
        if !self.later.remove(&(due.from, key.clone())) {
            self.ready.remove(&(due.at, key.clone()));
        }
        Some(due)
    }

    /// Of what may be handed out, what is due first.
    fn first_ready(&mut self, now: Instant) -> Option<&(Instant, K)> {
        while let Some((_, key)) = self.later.first().filter(|(from, _)| *from <= now).cloned() {
            self.later.pop_first();
            let at = self.due.get(&key).map_or(now, |due| due.at);
            self.ready.insert((at, key));
        }
        self.ready.first()
    }

    fn take(&mut self, now: Instant) -> Option<K> {
        let (_, key) = self.first_ready(now).cloned()?;
        if let Some(due) = self.remove(&key) {
            self.stats.latency.observe(now.saturating_duration_since(due.from));
        }
        self.working.insert(key.clone(), Working { since: now, asked: None });
        Some(key)
    }
}

/// What is to follow a reconciliation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing to do until something changes.
    AwaitChange,
    /// Reconcile again after this long.
    RequeueAfter(Duration),
}

/// Takes keys from the queue for ever, `workers` at a time, and deals with each by `reconcile`.
///
/// An error is logged and the key retried with backoff.
pub async fn work<K, F, Fut, E>(queue: &Queue<K>, workers: usize, clock: &Clock, reconcile: F)
where
    K: Ord + Clone + Debug,
    F: Fn(K) -> Fut,
    Fut: Future<Output = Result<Action, E>>,
    E: std::error::Error + 'static,
{
    futures::future::join_all((0..workers).map(|_| worker(queue, clock, &reconcile))).await;
}

/// As [`work`], each worker a task of its own: for work that one core cannot keep up with.
pub async fn work_in_tasks<K, F, Fut, E>(queue: &Queue<K>, workers: usize, clock: &Clock, reconcile: F)
where
    K: Ord + Clone + Debug + Send + Sync + 'static,
    F: Fn(K) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, E>> + Send,
    E: std::error::Error + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for _ in 0..workers {
        let (queue, clock, reconcile) = (queue.clone(), clock.clone(), reconcile.clone());
        tasks.spawn(async move { worker(&queue, &clock, &reconcile).await });
    }
    while let Some(ended) = tasks.join_next().await {
        // Workers end only by a panic, which is the caller's as much as theirs.
        if let Err(error) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

async fn worker<K, F, Fut, E>(queue: &Queue<K>, clock: &Clock, reconcile: &F)
where
    K: Ord + Clone + Debug,
    F: Fn(K) -> Fut,
    Fut: Future<Output = Result<Action, E>>,
    E: std::error::Error + 'static,
{
    loop {
        let key = queue.next().await;
        match reconcile(key.clone()).await {
            Ok(Action::AwaitChange) => queue.done(&key),
            Ok(Action::RequeueAfter(wait)) => queue.done_until(key, wait),
            Err(error) => {
                let wait = queue.failed(&key);
                // Some causes are a member's own words.
                let error = bounded_text(&chain(&error), 4 * FOREIGN_TEXT_LIMIT);
                tracing::warn!(?key, error, ?wait, now = %clock.now(), "will be tried again");
            }
        }
    }
}

/// An error with its causes, in one line.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = words(error);
    let mut source = cause(error);
    while let Some(next) = source {
        let next_text = words(next);
        // Many errors repeat their cause in their own text; say it once.
        if !text.contains(&next_text) {
            text.push_str(": ");
            text.push_str(&next_text);
        }
        source = cause(next);
    }
    text
}

/// What is behind an error. What an API server answered has said all.
fn cause<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a (dyn std::error::Error + 'static)> {
    let answer = matches!(as_kube(error), Some(kube::Error::Api(_)));
    error.source().filter(|_| !answer)
}

fn words(error: &(dyn std::error::Error + 'static)) -> String {
    as_kube(error).map_or_else(|| error.to_string(), told)
}

fn as_kube<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a kube::Error> {
    let boxed = || error.downcast_ref::<Box<kube::Error>>().map(AsRef::as_ref);
    error.downcast_ref::<kube::Error>().or_else(boxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn hands_out_by_time_then_by_key() {
        let queue = Queue::new(Seed::new(1));
        queue.add_after("late", Duration::from_secs(2));
        queue.add("b");
        queue.add("a");
        queue.add_after("late", Duration::from_secs(1));
        let start = Instant::now();
        assert_eq!(queue.next().await, "a");
        assert_eq!(queue.next().await, "b");
        assert_eq!(queue.next().await, "late");
        assert_eq!(start.elapsed(), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_during_the_work_brings_the_key_back_once() {
        let queue = Queue::new(Seed::new(1));
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.add("a");
        queue.add("a");
        let idle = tokio::time::timeout(Duration::from_secs(60), queue.next()).await;
        assert!(idle.is_err(), "handed out while being worked on");
        queue.done(&"a");
        assert_eq!(queue.next().await, "a");
        queue.done(&"a");
        assert!(queue.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn failures_wait_longer_and_longer_until_success() {
        let queue = Queue::new(Seed::new(1));
        queue.add("a");
        let mut waits = Vec::new();
        for _ in 0..4 {
            let key = queue.next().await;
            waits.push(queue.failed(&key));
        }
        assert!(waits.windows(2).all(|pair| pair[0] < pair[1]), "{waits:?}");
        let key = queue.next().await;
        queue.done(&key);
        queue.add("a");
        let key = queue.next().await;
        assert!(queue.failed(&key) < waits[1]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_wait_is_handed_out_when_nothing_else_is_due() {
        let (queue, second) = (Queue::new(Seed::new(1)), Duration::from_secs(1));
        queue.add_within("patient", second, 10 * second);
        queue.add_after("late", 30 * second);
        for name in ["a", "b", "c"] {
            queue.add_after(name, 2 * second);
        }
        tokio::time::sleep(2 * second).await;
        assert_eq!([queue.next().await, queue.next().await], ["a", "b"]);
        tokio::time::sleep(9 * second).await;
        queue.add("d");
        assert_eq!([queue.next().await, queue.next().await], ["c", "patient"], "it has waited long enough");
        queue.add_within("patient", second, 10 * second);
        assert_eq!(queue.next().await, "d");
        queue.done(&"patient");
        let start = Instant::now();
        assert_eq!((queue.next().await, start.elapsed()), ("patient", second));
        queue.add_within("e", second, 10 * second);
        queue.add("e");
        assert_eq!((queue.next().await, start.elapsed()), ("e", second), "asked for at once meanwhile");
        assert_eq!(queue.next().await, "late");
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_wait_less_goes_first() {
        let (queue, second) = (Queue::new(Seed::new(1)), Duration::from_secs(1));
        for name in ["many-1", "many-2"] {
            queue.add_within(name, Duration::ZERO, 60 * second);
        }
        assert_eq!(queue.next().await, "many-1", "nothing else is to be done");
        queue.add_within("begun", second, 10 * second);
        tokio::time::sleep(second).await;
        assert_eq!(queue.behind(), second, "of what is under way");
        assert_eq!([queue.next().await, queue.next().await], ["begun", "many-2"]);
        assert_eq!(queue.len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn is_behind_by_what_was_due_first() {
        let queue = Queue::new(Seed::new(1));
        queue.add_after("a", Duration::from_secs(1));
        assert_eq!(queue.behind(), Duration::ZERO, "nothing is due yet");
        tokio::time::sleep(Duration::from_secs(4)).await;
        queue.add("b");
        assert_eq!(queue.behind(), Duration::from_secs(3));
        assert_eq!(queue.next().await, "a");
        assert_eq!(queue.behind(), Duration::ZERO);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(queue.under_way(), Duration::from_secs(2));
        queue.done(&"a");
        assert_eq!((queue.under_way(), queue.behind()), (Duration::ZERO, Duration::from_secs(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn workers_in_tasks_deal_with_all_and_stop_when_dropped() {
        let (queue, clock) = (Queue::new(Seed::new(1)), Clock::starting_at(jiff::Timestamp::UNIX_EPOCH));
        let done = Arc::new(Mutex::new(Vec::new()));
        let (told, keys) = (Arc::clone(&done), queue.clone());
        let working = tokio::spawn(async move {
            let reconcile = move |key: &'static str| {
                let told = Arc::clone(&told);
                async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    told.lock().unwrap().push(key);
                    Ok::<_, std::fmt::Error>(Action::AwaitChange)
                }
            };
            work_in_tasks(&keys, 2, &clock, reconcile).await;
        });
        ["a", "b", "c"].into_iter().for_each(|key| queue.add(key));
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(*done.lock().unwrap(), ["a", "b"]);
        working.abort();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(*done.lock().unwrap(), ["a", "b"], "what was under way is dropped");
    }

    #[tokio::test(start_paused = true)]
    async fn what_happens_in_it_is_counted() {
        let (queue, second) = (Queue::new(Seed::new(1)), Duration::from_secs(1));
        queue.add("a");
        queue.add("a");
        queue.add_after("later", 60 * second);
        tokio::time::sleep(second).await;
        assert_eq!((queue.view().due, queue.view().stats.adds), (1, 2));
        let key = queue.next().await;
        queue.add("a");
        queue.add("a");
        tokio::time::sleep(2 * second).await;
        let view = queue.view();
        assert_eq!((view.due, view.working, view.longest, view.unfinished), (0, 1, 2 * second, 2 * second));
        queue.done_until(key, 60 * second);
        let key = queue.next().await;
        queue.failed(&key);
        let key = queue.next().await;
        queue.done(&key);
        let stats = queue.view().stats;
        // It was added at first, during the work, by the wish to look again, and by the retry.
        assert_eq!((stats.adds, stats.done, stats.requeued, stats.failed), (4, 1, 1, 1));
        assert_eq!((stats.latency.count(), stats.work.count()), (3, 3));
        assert!((stats.latency.sum() - 3.0).abs() < 0.01 && (stats.work.sum() - 2.0).abs() < 0.01);
    }

    #[tokio::test(start_paused = true)]
    async fn two_workers_share_what_is_due_at_once() {
        let queue = Queue::new(Seed::new(1));
        queue.add("a");
        queue.add("b");
        let (one, two) = tokio::join!(queue.next(), queue.next());
        assert_eq!((one, two), ("a", "b"));
    }
}
