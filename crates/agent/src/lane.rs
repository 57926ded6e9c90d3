//! Work of one kind that blocks a thread.
//!
//! What hangs in the kernel keeps its thread, also when nobody waits for it any more. So there is a bounded number of each kind, and
//! one for each thing: whoever tries again while one hangs gets an error, not another thread.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

/// Why it is not known to be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaneError {
    /// The same is still under way.
    #[error(
        "an earlier {kind} has not ended yet: the disk or the kernel of the node hangs, see `dmesg` there"
    )]
    Busy {
        /// What it is.
        kind: &'static str,
    },
    /// Too many others are.
    #[error(
        "no thread is left for another {kind}: {most} have not ended yet, since the disk or the kernel of the node hangs, see `dmesg` \
         there"
    )]
    Full {
        /// What it is.
        kind: &'static str,
        /// How many there may be.
        most: usize,
    },
    /// It does not end.
    #[error(
        "the {kind} has not ended within {milliseconds} ms: the disk or the kernel of the node hangs, see `dmesg` there"
    )]
    Late {
        /// What it is.
        kind: &'static str,
        /// How long it could have taken.
        milliseconds: u64,
    },
    /// The process ends.
    #[error("the agent is stopping: it goes on when it runs again")]
    Stopping,
}

/// All work of one kind; clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    kind: &'static str,
    most: usize,
    patience: Duration,
    slots: Arc<Semaphore>,
    things: Arc<Mutex<BTreeSet<String>>>,
}

impl Lane {
    /// At most so many at once, each of which may take so long.
    pub(crate) fn new(kind: &'static str, most: usize, patience: Duration) -> Self {
        Self { kind, most, patience, slots: Arc::new(Semaphore::new(most)), things: Arc::default() }
    }

    /// The same with another patience.
    pub(crate) fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Does it on a thread of its own, unless that is under way for the same thing. It goes on if nobody waits for it any more.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        thing: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, LaneError> {
        let Self { kind, most, patience, .. } = *self;
        let deadline = Instant::now() + patience;
        let busy = Busy::enter(&self.things, thing).ok_or(LaneError::Busy { kind })?;
        let slot = timeout_at(deadline, Arc::clone(&self.slots).acquire_owned()).await;
        let Ok(Ok(slot)) = slot else { return Err(LaneError::Full { kind, most }) };
        let done = spawn_blocking(move || {
            let _kept = (busy, slot);
            work()
        });
        match timeout_at(deadline, done).await {
            Ok(done) => done.map_err(|_| LaneError::Stopping),
            Err(_) => Err(LaneError::Late { kind, milliseconds: milliseconds(patience) }),
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Says that work is under way for a thing, until it is dropped.
struct Busy {
    things: Arc<Mutex<BTreeSet<String>>>,
    thing: String,
}

impl Busy {
    fn enter(things: &Arc<Mutex<BTreeSet<String>>>, thing: &str) -> Option<Self> {
        let entered = lock(things).insert(thing.to_owned());
        entered.then(|| Self { things: Arc::clone(things), thing: thing.to_owned() })
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        lock(&self.things).remove(&self.thing);
    }
}

fn lock(things: &Mutex<BTreeSet<String>>) -> MutexGuard<'_, BTreeSet<String>> {
    things.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};
    use tokio::task::yield_now;

    /// Long enough for a thread to be started, short enough to be waited for.
    const SHORT: Duration = Duration::from_millis(50);

    /// Something that hangs until this is dropped, and that nobody waits for any more.
    async fn hang(lane: &Lane, thing: &str) -> Sender<()> {
        let (release, hangs) = channel::<()>();
        let late = lane.run(thing, move || hangs.recv().is_ok()).await;
        assert_eq!(late, Err(LaneError::Late { kind: "look", milliseconds: 50 }));
        release
    }

    #[tokio::test]
    async fn what_hangs_takes_one_thread_for_each_thing() {
        let lane = Lane::new("look", 8, SHORT);
        let release = hang(&lane, "a").await;
        for _ in 0..20 {
            assert_eq!(lane.run("a", || ()).await, Err(LaneError::Busy { kind: "look" }));
        }
        assert_eq!(lane.run("b", || 7).await, Ok(7));
        drop(release);
        while lane.run("a", || ()).await.is_err() {
            yield_now().await;
        }
    }

    #[tokio::test]
    async fn what_hangs_takes_a_bounded_number_of_threads() {
        let lane = Lane::new("look", 2, SHORT);
        let release = [hang(&lane, "a").await, hang(&lane, "b").await];
        for thing in ["c", "d", "c"] {
            assert_eq!(lane.run(thing, || ()).await, Err(LaneError::Full { kind: "look", most: 2 }));
        }
        drop(release);
        while lane.run("c", || ()).await.is_err() {
            yield_now().await;
        }
    }
}
