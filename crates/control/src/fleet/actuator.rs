//! What is to be done in one member: a queue of its own, a limit of its own, a circuit breaker of its own.
//!
//! Controllers decide, write down what they decided, and hand the rest to the actuators of the members. Nobody waits for
//! a member but its own actuator, so a slow, refusing or hanging member costs only itself.
//!
//! Work is named by a kind and a key: one member does one thing at a time about one object. Work that has not begun is
//! replaced by what is submitted later. Work that has begun is not interrupted; whoever submits meanwhile is asked to
//! look again when it has ended, since what was decided may rest on what it changes.

use super::gate::Gate;
use futures::FutureExt;
use futures::future::BoxFuture;
use portolan_runtime::Key;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How many pieces of work are under way in one member at the same time.
const WORKERS: usize = 6;

/// How often to look whether a member that does not answer is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// What work is about: the kind and the key of an object of the hub, and which of its copies.
pub(crate) type Subject = (&'static str, About, Key);

/// Which copies work is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum About {
    /// The object's own.
    Copy,
    /// Those of a former object of its name.
    Stray,
}

type Work = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

/// The queue of one member.
#[derive(Clone)]
pub(crate) struct Actuator {
    state: Arc<Mutex<State>>,
    gate: Arc<Gate>,
    spawner: Spawner,
}

#[derive(Default)]
struct State {
    /// What has not begun.
    pending: BTreeMap<Subject, Work>,
    /// The order in which it begins; what is not pending any more is passed over.
    order: VecDeque<Subject>,
    /// What is under way: since when, and whether somebody is to look again after it.
    running: BTreeMap<Subject, Running>,
    workers: usize,
}

struct Running {
    since: Instant,
    again: Option<Box<dyn FnOnce() + Send>>,
}

/// What became of submitted work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Submitted {
    /// It begins when its turn comes.
    Queued,
    /// Other work about the same object is under way: this one is dropped, and `again` called when that has ended.
    Deferred,
}

impl Actuator {
    pub(crate) fn new(gate: Arc<Gate>, spawner: Spawner) -> Self {
        Self { state: Arc::default(), gate, spawner }
    }

    /// Hands over what is to be done about an object, in place of what was handed over before and has not begun. If work
    /// about the object is under way, `again` is called after it instead.
    pub(crate) fn submit<F>(
        &self,
        subject: Subject,
        work: impl FnOnce() -> F + Send + 'static,
        again: impl FnOnce() + Send + 'static,
    ) -> Submitted
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut state = self.state();
        if let Some(running) = state.running.get_mut(&subject) {
            running.again = Some(Box::new(again));
            return Submitted::Deferred;
        }
        let work: Work = Box::new(move || work().boxed());
        if state.pending.insert(subject.clone(), work).is_none() {
            state.order.push_back(subject);
        }
        if state.workers < WORKERS {
            state.workers += 1;
            self.spawner.spawn(self.clone().work().boxed());
        }
        Submitted::Queued
    }

    /// Forgets what has not begun. Work holds its member, which holds this queue: without this both would stay.
    pub(crate) fn clear(&self) {
        let pending = std::mem::take(&mut self.state().pending);
        drop(pending);
    }

    /// How much waits for its turn, and how much is under way.
    pub(crate) fn load(&self) -> (usize, usize) {
        let state = self.state();
        (state.pending.len(), state.running.len())
    }

    /// For how long the longest work is under way: the longer, the busier is the member.
    pub(crate) fn under_way(&self) -> Duration {
        let since = self.state().running.values().map(|running| running.since).min();
        since.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// Works until nothing is left. While the member does not answer, one worker at a time finds out whether it does again,
    /// after a pause.
    async fn work(self) {
        loop {
            while let Some(until) = self.gate.pauses() {
                if until <= Instant::now() && self.state().running.is_empty() {
                    break;
                }
                tokio::time::sleep_until(until.max(Instant::now() + PAUSE)).await;
            }
            let Some((subject, work)) = self.next() else { return };
            work().await;
            let again = self.state().running.remove(&subject).and_then(|running| running.again);
            if let Some(again) = again {
                again();
            }
        }
    }

    /// The next piece of work; nothing if there is none, and the worker is counted out.
    fn next(&self) -> Option<(Subject, Work)> {
        let mut state = self.state();
        while let Some(subject) = state.order.pop_front() {
            if let Some(work) = state.pending.remove(&subject) {
                let running = Running { since: Instant::now(), again: None };
                state.running.insert(subject.clone(), running);
                return Some((subject, work));
            }
        }
        state.workers -= 1;
        None
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the workers of all actuators; clones are the same.
#[derive(Clone)]
pub(crate) struct Spawner {
    workers: UnboundedSender<BoxFuture<'static, ()>>,
    started: Arc<Mutex<Option<UnboundedReceiver<BoxFuture<'static, ()>>>>>,
}

impl Default for Spawner {
    fn default() -> Self {
        let (workers, started) = unbounded_channel();
        Self { workers, started: Arc::new(Mutex::new(Some(started))) }
    }
}

impl Spawner {
    fn spawn(&self, worker: BoxFuture<'static, ()>) {
        // Once the term is over nobody takes it, and nothing is to be done any more.
        _ = self.workers.send(worker);
    }

    /// Runs the workers for ever. A panic of one of them is a panic of this.
    pub(crate) async fn run(self) {
        let taken = self.started.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut started) = taken else { return };
        let mut workers = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                Some(ended) = workers.join_next() => {
                    if let Err(error) = ended
                        && error.is_panic()
                    {
                        std::panic::resume_unwind(error.into_panic());
                    }
                }
                Some(worker) = started.recv() => {
                    workers.spawn(worker);
                }
                else => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Semaphore;

    fn actuator() -> (Actuator, JoinSet<()>) {
        let (spawner, mut tasks) = (Spawner::default(), JoinSet::new());
        tasks.spawn(spawner.clone().run());
        (Actuator::new(Arc::default(), spawner), tasks)
    }

    fn subject(name: &str) -> Subject {
        ("Kind", About::Copy, Key::new("n", name))
    }

    #[tokio::test(start_paused = true)]
    async fn a_member_does_few_things_at_a_time_and_one_about_each_object() {
        let (actuator, _tasks) = actuator();
        let (most, running) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let done = Arc::new(AtomicUsize::new(0));
        for number in 0..40 {
            let (most, running, done) = (Arc::clone(&most), Arc::clone(&running), Arc::clone(&done));
            let work = move || async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                running.fetch_sub(1, Ordering::SeqCst);
                done.fetch_add(1, Ordering::SeqCst);
            };
            assert_eq!(actuator.submit(subject(&number.to_string()), work, || ()), Submitted::Queued);
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!((most.load(Ordering::SeqCst), done.load(Ordering::SeqCst)), (WORKERS, 40));
        assert_eq!(actuator.state().workers, 0, "nobody works when nothing is left");
    }

    #[tokio::test(start_paused = true)]
    async fn later_work_replaces_what_has_not_begun_and_waits_for_what_has() {
        let (actuator, _tasks) = actuator();
        let (may_end, log) = (Arc::new(Semaphore::new(0)), Arc::new(Mutex::new(Vec::new())));
        let work = |text: &'static str| {
            let (may_end, log) = (Arc::clone(&may_end), Arc::clone(&log));
            move || async move {
                log.lock().unwrap().push(text);
                drop(may_end.acquire().await);
            }
        };
        let again = || {
            let log = Arc::clone(&log);
            move || log.lock().unwrap().push("again")
        };
        for number in 0..WORKERS {
            actuator.submit(subject(&number.to_string()), work("first"), again());
        }
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(actuator.submit(subject("0"), work("never"), again()), Submitted::Deferred);
        actuator.submit(subject("waits"), work("replaced"), again());
        actuator.submit(subject("waits"), work("later"), again());
        may_end.add_permits(100);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut expected = vec!["first"; WORKERS];
        expected.extend(["again", "later"]);
        let mut log = log.lock().unwrap().clone();
        log[WORKERS..].sort_unstable();
        assert_eq!(log, expected);
    }
}
